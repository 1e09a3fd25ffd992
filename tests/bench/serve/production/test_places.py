"""`[places]` of a values file: every rendered file follows them, and what would break one is refused."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from bench import paths
from bench.serve.catalog import catalog, values
from bench.serve.catalog.values import Values
from bench.serve.deployment.case import Case
from bench.serve.production import one_host
from tests.bench.serve.production.test_one_host import NOTE, lines_of
from tests.cases import for_files

SEVERAL_SITES = paths.KIT / "docs" / "how-to" / "several-sites.md"


def test_behind_a_balancer_the_port_of_https_is_noted(tmp_path, bench):
    done = bench("render", "gunicorn", "--set", "listener=behind", "--output", tmp_path / "o")
    note = "note: listener=behind: plain HTTP on port 443; another is `port` under [places] of a values file"
    *notes, last = done.stderr.splitlines()
    assert (done.returncode, notes, last.endswith("o/INSTALL.md")) == (0, [note], True)
    own = tmp_path / "own.toml"
    own.write_text('base = "production"\nlistener = "behind"\n[places]\nport = 8000\n')
    done = bench("render", "gunicorn", "--values", own, "--output", tmp_path / "p")
    *notes, last = done.stderr.splitlines()
    assert (done.returncode, notes, last.endswith("p/INSTALL.md")) == (0, [], True)


@pytest.mark.parametrize(("place", "odd"), [("data", "/data/site data"), ("conf", "/etc/a;b"), ("tls", '/etc/"tls')])
def test_a_place_that_breaks_a_file_is_refused(place, odd, tmp_path, bench):
    own = tmp_path / "own.toml"
    own.write_text(f"base = 'production'\n[places]\n{place} = '{odd}'\n")
    done = bench("render", "nginx-gunicorn", "--values", own, "--output", tmp_path / "o")
    assert (done.returncode, done.stderr.count("\n"), f"places.{place}" in done.stderr) == (2, 1, True)
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("data", "state"),
    [("/var/lib/benchapp", "benchapp"), ("/var/lib/sites/shop", "sites/shop"), ("/srv/data/shop", "")],
)
def test_every_file_follows_the_directory_of_the_data(tmp_path, data, state):
    """systemd makes one below /var/lib and lets its units write there; another it would not know."""
    usual, out = catalog.read().values["production"], tmp_path / "out"
    chosen = replace(usual, places={**usual.places, "data": data})
    one_host.write(for_files("nginx-gunicorn", values=chosen), out)
    texts = {path.name: path.read_text() for path in out.rglob("*") if path.is_file()}
    for name in ("benchapp-gunicorn.service", "benchapp-clearsessions.service"):
        assert lines_of(texts[name], "StateDirectory") == ([state] if state else [])
        assert (f"ReadWritePaths={data}" in texts[name].splitlines()) == (not state)
    for name in ("benchapp-check", "benchapp-manage", "benchapp-restore"):
        assert set(re.findall(r"StateDirectory=(\S+)", texts[name])) == ({state} if state else set())
        assert subprocess.run(["sh", "-n", str(out / name)]).returncode == 0
    assert (f"d {data} 0750 benchapp-app benchapp-app -" in texts["tmpfiles.conf"]) == (not state)
    assert f"sqlite:///{data}/site.sqlite3" in texts[NOTE]
    if data != usual.places["data"]:
        assert not [name for name, text in texts.items() if re.search(r"/var/lib/benchapp(?![\w-])", text)]


# The file of the page on several sites.
SHOP = re.search(r"```toml\n(.*?)```", SEVERAL_SITES.read_text("utf-8").replace("\n   ", "\n"), re.S)[1]
# Modules, the table of the description and the kit's own database user of a project are the kit's, whose site it is.
OF_THE_KIT = r"tool\.benchapp|benchapp[./](caching|serving|login_limit)|benchapp_overlay"


def second_site(folder: Path) -> Values:
    """Values for a site beside the one that `production` has."""
    own = folder / "shop.toml"
    own.write_text(SHOP)
    return values.read_own(own, catalog.read().values)


def listens(case: Case) -> set[tuple[str, int]]:
    """The addresses of a host's servers: sockets, or ports, whatever the address."""
    placed = one_host.in_production(case, "127.0.0.1")
    case = placed.case
    endpoints = {(address.path, address.port) for addresses in placed.listens.values() for address in addresses}
    redirected = case.settings["redirect"] == "on"
    return endpoints | ({("", int(case.settings["http_port"]))} if redirected else set())


@pytest.mark.parametrize(
    ("stack", "layer"),
    [
        ("nginx-gunicorn", "page-cache"),
        ("nginx-granian", "nginx-memcached"),
        ("nginx-waitress", "fragments"),
        ("apache-modwsgi", "varnish"),
        ("nginx-uwsgi", "uwsgi-cache"),
        ("caddy-gunicorn", "none"),
        ("granian", "none"),
    ],
)
def test_two_sites_share_no_file_unit_user_or_port(stack, layer, tmp_path):
    first = for_files(stack, layer, "production")
    second = for_files(stack, layer, second_site(tmp_path))
    assert not listens(first) & listens(second)
    assert "bind6" in second.values.changes and second.values.names["bind6"] == "off"
    one_host.write(first, tmp_path / "first")
    one_host.write(second, tmp_path / "second")
    own = {path.relative_to(tmp_path / "second"): path for path in (tmp_path / "second").rglob("*") if path.is_file()}
    named = [str(name) for name in own if name.name.startswith("shop-")]
    assert {"shop-install", "shop-deploy", "systemd/shop-" + first.servers[0].name + ".service"} <= set(named)
    for name, path in own.items():
        if name.parts[0] == "python":
            continue
        assert "benchapp" not in str(name)
        assert not re.search(r"\bbenchapp\b", re.sub(OF_THE_KIT, "", path.read_text())), name
        if path.name.startswith("shop-") and path.read_text().startswith("#!/bin/sh"):
            assert subprocess.run(["sh", "-n", path]).returncode == 0, name
    assert (tmp_path / "first" / "benchapp-deploy").is_file()


FIGURES = re.compile(r"127\.0\.0\.1:(?:9\d{3}|8405)\b")


@pytest.mark.parametrize(
    ("stack", "layer"),
    [("nginx-gunicorn", "varnish"), ("nginx-uwsgi", "none"), ("caddy-gunicorn", "none"), ("apache-modwsgi", "varnish")],
)
def test_the_figures_of_two_sites_are_at_two_addresses(stack, layer, tmp_path):
    def write(name: str, **places: str) -> str:
        known = catalog.read().values["production"]
        chosen = replace(known, places={**known.places, **places}).changed({"metrics": "on"})
        written = one_host.write(for_files(stack, layer, values=chosen), tmp_path / name)
        return "\n".join(path.read_text() for path in written)

    first = FIGURES.findall(write("first"))
    second = write("second", metrics_bind="127.0.0.2")
    assert first and not FIGURES.findall(second)
    assert [place.replace("0.1:", "0.2:") for place in first] == re.findall(r"127\.0\.0\.2:\d+", second)


def masked(script: Path, active: str) -> list[str]:
    """The services that the function `packages` of an install script masks while those of `active` run."""
    functions = re.findall(r"(?ms)^(?:mask_stopped|packages)\(\) \{.*?^\}$", script.read_text())
    fakes = f"""
        fetch() {{ :; }}
        systemctl() {{
            case $* in
                *is-active*) case " {active} " in *" ${{3}} "*) return 0 ;; esac; return 1 ;;
                *mask*) for word in "$@"; do case $word in --* | mask) ;; *) echo "$word" ;; esac; done ;;
            esac
        }}
    """
    done = subprocess.run(["sh", "-euc", "\n".join([*functions, fakes, "packages"])], capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_a_server_that_runs_in_front_of_a_site_is_not_masked(tmp_path):
    one_host.write(for_files("caddy-gunicorn", "varnish", second_site(tmp_path)), tmp_path / "behind")
    assert masked(tmp_path / "behind" / "shop-install", "caddy") == ["varnish", "varnishncsa"]
    one_host.write(for_files("nginx-gunicorn", "nginx-memcached", "production"), tmp_path / "front")
    install = tmp_path / "front" / "benchapp-install"
    assert (masked(install, "nginx"), masked(install, "memcached")) == (["nginx", "memcached"], ["nginx"])


@pytest.mark.parametrize("name", ["Shop", "shop-two", "9shop", "", "s" * 21, "sh op"])
def test_a_name_that_no_unit_can_have_is_refused(name, tmp_path, bench):
    own = tmp_path / "own.toml"
    own.write_text(f"[places]\nname = '{name}'\n")
    done = bench("render", "nginx-gunicorn", "--values", own, "--output", tmp_path / "o")
    assert (done.returncode, done.stderr.count("\n"), "places.name" in done.stderr) == (2, 1, True)
    assert not (tmp_path / "o").exists()
