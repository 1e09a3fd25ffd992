"""An analyser of Nginx configurations that others wrote, over all that production renders."""

from __future__ import annotations

import json
import subprocess

import pytest

from bench import paths, programs
from bench.serve.catalog import catalog
from bench.serve.production import one_host
from tests.cases import production
from tests.deploy import few

# What it says against the files, and why that stays.
EXCEPTIONS = {
    # Safe if the `if` of a location holds nothing but `set`, which chooses a file that is there ready-made.
    # https://github.com/nginxinc/nginx-wiki/blob/master/source/start/topics/depth/ifisevil.rst
    "if_is_evil": "$brotli",
    # The application needs the port of a Host header, too. A foreign name comes to the default server, which passes on
    # health checks only, with the site's name.
    "host_spoofing": "$http_host",
    # Debian 13 has OpenSSL 3.5; no file for Debian 12 names that group.
    "ssl_ecdh_curve": "X25519MLKEM768",
}
STACKS = [name for name in catalog.read().stacks if name.startswith("nginx-")]
LAYERED = [
    ("nginx-gunicorn", "nginx-microcache"),
    ("nginx-gunicorn", "nginx-memcached"),
    ("nginx-gunicorn", "staticgenerator"),
    ("nginx-gunicorn", "varnish"),
    ("nginx-uwsgi", "uwsgi-cache"),
]


@pytest.mark.parametrize(
    ("stack", "layer"),
    [*few.few([(name, "none") for name in STACKS], lambda case: few.of_stack(case[0])), *LAYERED],
)
@pytest.mark.parametrize("debian", [12, 13])
def test_gixy_has_nothing_to_say_but_what_is_named(stack, layer, debian, tmp_path):
    gixy = programs.find([str(paths.VENV / "bin" / "gixy")])
    if gixy is None:
        pytest.skip("package not installed: gixy-ng")
    one_host.write(production(stack, layer, debian=debian), tmp_path / "out")
    done = subprocess.run(
        [str(gixy), "--format", "json", str(tmp_path / "out" / "nginx.conf")], capture_output=True, text=True
    )
    left = [
        (item["plugin"], item["reason"], item["config"])
        for item in json.loads(done.stdout)
        if not (item["plugin"] in EXCEPTIONS and EXCEPTIONS[item["plugin"]] in item["config"])
    ]
    assert left == []
