"""On booted hosts of both releases: one stack and layer after another, each put there by the install note's command."""

from __future__ import annotations

import re

import pytest

from tests.deploy.installing import (
    DATABASE,
    EXPORT_S,
    NAME,
    SERVERS,
    SLOW_S,
    SOURCE,
    UVICORN,
    add_slow_page,
    boots,
    commit,
    no_one_waits,
    prepare,
    release,
    render,
    response_of,
    row,
    visited,
)
from tests.deploy.machine import Machine, booted
from tests.waiting import until

pytestmark = [pytest.mark.hosts, pytest.mark.servers]

# In this order and in the other one. Between neighbours users, ports, services, sockets and keys change hands.
TOUR = (
    ("caddy-gunicorn", "none"),
    ("nginx-uwsgi", "nginx-microcache"),
    ("apache-modwsgi", "none"),
    ("nginx-gunicorn", "varnish"),
    ("granian", "none"),
    ("nginx-granian", "nginx-memcached"),
    ("apache-modwsgi", "varnish"),
    ("gunicorn-uvicorn", "varnish"),
    ("nginx-gunicorn-gthread", "nginx-microcache"),
    ("uvicorn", "page-cache"),
    ("gunicorn", "none"),
    ("nginx-gunicorn", "nginx-microcache"),
    ("nginx-gunicorn", "none"),
)
# An export is under way during a deploy of these, one of each kind; during other deploys there is a slow
# request. test_booted_host has gunicorn's.
EXPORTED = ("uvicorn", "nginx-uwsgi", "nginx-granian", "granian", "apache-modwsgi")
UNITS, CONF, LOG = "etc/systemd/system", "etc/benchapp", "/var/log/benchapp/access.log"
# For so long nobody may get a page while a package of a server is upgraded and the server restarts.
DOWN_S = 20
# What stays whatever is rendered.
OPERATORS = {"secrets.env", "installed"}
INSTALL = f"sh /srv/rendered/benchapp-install {SOURCE}"


@pytest.fixture(scope="module", params=(12, 13), ids=("debian12", "debian13"))
def host(tmp_path_factory, request):
    with booted(tmp_path_factory.mktemp("machine"), request.param) as machine:
        prepare(machine, (*SERVERS, *UVICORN, "granian"))
        add_slow_page(machine)
        commit(machine, "slow-page")
        machine.write("/etc/benchapp/secrets.env", f"SECRET_KEY={'k7-Xz_' * 10}\n{DATABASE}\n", 0o600)
        yield machine


@pytest.mark.parametrize("step", range(len(TOUR)))
def test_each_stack_takes_over_from_the_one_before(host, step):
    stack, layer = TOUR[step if host.release == 13 else -1 - step]
    render(host, stack, layer)
    output = host.run(INSTALL)
    assert output.endswith(" serves\n")
    assert serves(host)
    assert host.run("systemctl list-units --failed --no-legend") == ""
    checked = host.run("benchapp-check")
    assert "FAIL" not in checked and "old " not in checked
    # And after a boot.
    boots(host)
    until(lambda: serves(host), "a page after the boot")
    nothing_else_is_there(host)
    logs_rotate(host)
    nobody_waits_for_a_deploy(host, str(step), EXPORT_S if stack in EXPORTED else SLOW_S)
    updates_take_effect(host)


def ends_tls(host: Machine) -> bool:
    note = (host.root / "srv/rendered/INSTALL.md").read_text()
    return f"https://{NAME}" in note.partition("\n4. ")[2].partition("\n## ")[0]


def page(host: Machine) -> str:
    """A page, with the status as its last line; empty without one."""
    if ends_tls(host):
        where = f"--insecure --resolve {NAME}:443:127.0.0.1 https://{NAME}/authors/"
    else:
        where = f"-H 'X-Forwarded-Proto: https' -H 'Host: {NAME}' http://127.0.0.1:8000/authors/"
    return host.try_run(f"curl --silent --max-time 60 -w '\\n%{{http_code}}' {where}").stdout


def serves(host: Machine) -> bool:
    return page(host).endswith("\n200")


def nothing_else_is_there(host: Machine) -> None:
    """Units, files and keys are those that were rendered, and the operator's."""
    rendered = host.root / "srv/rendered"
    files = {path.name for folder in ("systemd", "timers") for path in (rendered / folder).iterdir()}
    assert {path.name for path in (host.root / UNITS).glob("benchapp*") if path.is_file()} == files
    loaded = host.run("systemctl list-units --all --no-legend --plain 'benchapp*'").splitlines()
    # Some are instances of a template: benchapp-alert@UNIT is that of benchapp-alert@.
    names = {re.sub("@.+[.]service", "@.service", line.split()[0]) for line in loaded if "not-found" not in line}
    assert names <= files
    here = {path.name for path in rendered.iterdir() if path.is_file()}
    there = {path.name for path in (host.root / CONF).iterdir() if path.is_file() or path.is_symlink()}
    built = {"mod_wsgi.so"} if "httpd.conf" in here else set()
    assert there - OPERATORS - built <= here
    keys = host.run("stat -c '%n %U %G %a' /etc/benchapp/tls/*").splitlines()
    assert {line.partition(" ")[2] for line in keys} == {"root benchapp-tls 640"}
    keys = {line.split()[0].rpartition("/")[2] for line in keys}
    assert keys - {"both.pem"} == {"fullchain.pem", "privkey.pem"}
    assert ("both.pem" in keys) == ("tls.cfg" in here)


def logs_rotate(host: Machine) -> None:
    """Three weeks, after each of which the log goes on."""
    if not (host.root / "etc/logrotate.d/benchapp").exists():
        return
    for week in range(3):
        assert serves(host)
        assert host.run("logrotate --force /etc/logrotate.d/benchapp") == "", week
    owners = host.run(f"stat -c '%U' {LOG}*").split()
    assert len(set(owners)) == 1 and len(owners) <= 9


def nobody_waits_for_a_deploy(host: Machine, new: str, slow_s: int) -> None:
    """A new release and the way back to the one before: no request is lost, whatever is under way."""
    words = [] if ends_tls(host) else ["--plain", "8000"]
    old = shown(host)
    release(host, new)
    no_one_waits(host, f"benchapp-deploy {SOURCE}", *words, slow_s=slow_s)
    until(lambda: shown(host) == new, "the new release")
    with visited(host, "--pairs", "2", *words) as noticed:
        host.run("benchapp-rollback")
    print(row(host, "benchapp-rollback", noticed))
    assert noticed["failed"] == []
    until(lambda: shown(host) == old, "the release before")


def shown(host: Machine) -> str:
    """The version of the site that a page names."""
    return page(host).partition("version:")[2].partition(":")[0]


def updates_take_effect(host: Machine) -> None:
    """A package of each program is installed again, as an update does it: each unit runs the new file, and serves."""
    units = host.run("systemctl list-units --no-legend --plain 'benchapp-*.service'").splitlines()
    names = [line.split()[0] for line in units]
    programs = {name: host.run(f"readlink /proc/{host.main_process(name)}/exe").strip() for name in names}
    packages = host.run(f"dpkg-query --search {' '.join(set(programs.values()))} | cut -d : -f 1").split()
    assert packages
    words = [] if ends_tls(host) else ["--plain", "8000"]
    lossless = not re.search("` restarts: .*fail", (host.root / "srv/rendered/INSTALL.md").read_text())
    if lossless:
        words += ["--slow", f"/slow/{SLOW_S}/"]
    with visited(host, *words) as noticed:
        host.run(f"apt-get install --reinstall --quiet=2 {' '.join(packages)}")
    print(row(host, f"apt-get install {' '.join(packages)}", noticed, SLOW_S if lossless else 0))
    assert noticed["down_s"] < DOWN_S
    if lossless:
        assert noticed["failed"] == [] and set(noticed["slow"]) == {200}
    for name in names:
        assert host.run(f"readlink /proc/{host.main_process(name)}/exe").strip() == programs[name], name
    assert host.run("benchapp-check --old") == ""
    until(lambda: serves(host), "a page after the update")


def test_a_refused_release_leaves_the_servers_of_before(host):
    """Of another stack, whose files are there already: they serve on, and the same command goes on later."""
    views = host.root / SOURCE[1:] / "benchapp/views.py"
    right = views.read_text()
    views.write_text(f"{right}\nimport nosuch\n")
    commit(host, "broken")
    before = host.run("systemctl list-units --no-legend --plain 'benchapp-*.service' | cut -d ' ' -f 1")
    render(host, "granian", "varnish")
    done = host.try_run(INSTALL)
    assert done.returncode == 1 and "No module named 'nosuch'" in done.stdout
    assert host.run("systemctl list-units --no-legend --plain 'benchapp-*.service' | cut -d ' ' -f 1") == before
    assert response_of(host, "/authors/")[0] == 200
    views.write_text(right)
    commit(host, "repaired")
    assert host.run(INSTALL).endswith(" serves\n")
    assert response_of(host, "/authors/")[0] == 200


def test_a_change_of_the_stack_that_is_taken_back_leaves_nothing(host):
    """A release is refused on another stack, and the stack of before is installed again: no visitor notices."""
    views = host.root / SOURCE[1:] / "benchapp/views.py"
    right = views.read_text()
    views.write_text(f"{right}\nimport nosuch\n")
    commit(host, "broken again")
    with visited(host, "--pairs", "2") as noticed:
        render(host, "nginx-gunicorn", "none")
        assert host.try_run(INSTALL).returncode == 1
        views.write_text(right)
        commit(host, "repaired again")
        render(host, "granian", "varnish")
        assert host.run(INSTALL).endswith(" serves\n")
    assert noticed["failed"] == []
    nothing_else_is_there(host)


def test_another_stack_needs_the_repository(host):
    render(host, "nginx-gunicorn", "none")
    done = host.try_run("sh /srv/rendered/benchapp-install")
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 1)
    assert "name the repository" in done.stdout
