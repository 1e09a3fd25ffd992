"""Each log file is rotated as its writer needs it."""

from __future__ import annotations

import re

import pytest

from bench.production import host as one_host
from tests.cases import for_files

ACCESS, ERRORS = "/var/log/benchapp/access.log", "/var/log/benchapp/apache-error.log"


def opens_anew(server: str, signal: str) -> str:
    return f"systemctl kill --kill-who=main --signal={signal} benchapp-{server}.service"


# Apache would have to restart gracefully, which loses requests with mod_wsgi.
APACHE = "copytruncate"


@pytest.mark.parametrize(
    ("stack", "layer", "rotated"),
    [
        ("nginx-gunicorn", "none", {ACCESS: opens_anew("nginx", "USR1")}),
        ("nginx-gunicorn", "varnish", {ACCESS: opens_anew("nginx", "USR1")}),
        ("lighttpd-fastcgi", "none", {ACCESS: opens_anew("lighttpd", "HUP")}),
        ("apache-modwsgi", "none", {f"{ERRORS} {ACCESS}": APACHE}),
        ("nginx-apache-modwsgi", "none", {ERRORS: APACHE, ACCESS: opens_anew("nginx", "USR1")}),
        ("cherokee-uwsgi", "none", {ACCESS: "copytruncate"}),
        # It rotates its own.
        ("caddy-gunicorn", "none", {}),
        ("haproxy-gunicorn", "none", {}),
        ("gunicorn", "none", {}),
    ],
)
def test_the_writer_of_a_log_opens_it_anew(tmp_path, stack, layer, rotated):
    one_host.write(for_files(stack, layer, "production"), tmp_path / "out")
    file = tmp_path / "out" / "logrotate.conf"
    text = file.read_text() if rotated else ""
    assert file.exists() == bool(rotated)
    blocks = re.findall(r"^(/[^\n]*) \{$(.*?)^\}$", text, re.MULTILINE | re.DOTALL)
    found = {files: re.search(r"systemctl .*|copytruncate", block)[0] for files, block in blocks}
    assert found == rotated
    note = (tmp_path / "out" / "INSTALL.md").read_text()
    assert ("is in no access log" in note) == (layer == "varnish")
