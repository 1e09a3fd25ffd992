"""The site on several hosts, deployed by the playbook: rolling update, proofs with each kind of layer, and a lost host.
Minutes of processor time, so `make test-hosts` runs it and `make test` does not."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench import paths, programs
from bench.measure.run import guards
from tests.bench.measure.hosts.deployed_world import NEEDED, SOURCE, DeployedWorld, deployed
from tests.bench.measure.hosts.world import require_possible

pytestmark = [pytest.mark.hosts, pytest.mark.servers]
STACK, LAYER, NAME = "nginx-gunicorn", "page-cache", "example.org"
FRONT = "10.213.0.11"
COMMIT = "-c user.name=x -c user.email=x@example.org commit -aqm changed"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    require_possible(*NEEDED)
    with deployed(tmp_path_factory.mktemp("world"), STACK, LAYER) as deployment:
        yield deployment


def verified(world: DeployedWorld, stack: str = STACK, layer: str = LAYER, **changes: object) -> tuple[int, dict]:
    """The exit status, and the success of each check."""
    argv = [sys.executable, "-m", "bench", "verify", "--inventory", world.path, stack, "--layer", layer, "--json"]
    argv += [word for name, value in changes.items() for word in ("--set", f"{name}={value}")]
    done = subprocess.run(argv, cwd=paths.KIT, capture_output=True, text=True)
    assert done.stdout, done.stderr
    outcomes = json.loads(done.stdout)["outcomes"]
    return done.returncode, {item["check"]: item["ok"] and not item["skipped"] for item in outcomes}


class Connection(http.client.HTTPSConnection):
    """A connection to the front and its self-signed certificate."""

    def connect(self) -> None:
        plain = socket.create_connection((FRONT, 443), timeout=self.timeout)
        self.sock = ssl._create_unverified_context().wrap_socket(plain, server_hostname=NAME)


def status_of(path: str = "/login/") -> int | str:
    """The status of a page that no layer caches, or the error."""
    connection = Connection(NAME, timeout=40)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        return response.status
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()


@contextmanager
def visited(visitors: int = 4) -> Iterator[Counter]:
    """Visitors who send requests until the block ends: counts of results."""
    results, stop = Counter(), threading.Event()

    def visit() -> None:
        while not stop.is_set():
            results[status_of()] += 1

    threads = [threading.Thread(target=visit) for _ in range(visitors)]
    for thread in threads:
        thread.start()
    try:
        yield results
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def serving(world: DeployedWorld) -> tuple[bool, bool]:
    """True if the front's file names web1, and if it names web2."""
    front = world.run("front1", "cat /etc/benchapp/nginx.conf")
    return "10.213.0.12:8001" in front, "10.213.0.13:8001" in front


def test_without_a_certificate_one_line_says_what_is_missing(world):
    (message,) = re.findall(r'"msg": "(.*)"', world.refused)
    assert message == (
        "front1 terminates TLS and has no certificate in /etc/benchapp/tls; add certificate=DIR to --extra-vars, a "
        "directory here with fullchain.pem and privkey.pem"
    )
    # Nothing was begun.
    assert "Packages" not in world.refused


def test_nobody_sees_a_secret(world):
    print(f"from inventory to first response: {world.first_s:.0f} s")
    # The playbook shows differences, and its processes were looked at.
    assert "SECRET_KEY" in world.run("web1", "cat /etc/benchapp/secrets.env")
    assert any("benchapp-database" in line for line in world.processes)
    needles = world.secrets
    assert set(needles) == {"database_password", "secret_key", "private key"}
    for name, secret in needles.items():
        assert secret not in world.previewed + world.first, f"{name} in the output"
        assert not [line for line in world.processes if secret in line], f"{name} in a list of processes"
    words = " ".join(f"-e {secret}" for secret in needles.values())
    # Written since the host was made.
    since = "find /etc /usr/local /srv /run /var /tmp -type f -newer /etc/hostname"
    # The database has a hash of its password.
    for host, has in (("web1", True), ("web2", True), ("front1", True), ("db1", False)):
        assert bool(world.run(host, f"{since} -exec grep -lF {words} {{}} + || true")) is has
        assert world.run(host, f"{since} -perm -o+r -exec grep -lF {words} {{}} + || true") == ""
    credentials = world.path.parent / "credentials"
    assert {path.stat().st_mode & 0o077 for path in credentials.iterdir()} == {0}


def test_a_second_run_changes_nothing(world):
    done = world.play()
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.findall(r"(\w+) +: ok=\d+ +changed=(\d+)", done.stdout) == [
        ("db1", "0"),
        ("front1", "0"),
        ("web1", "0"),
        ("web2", "0"),
    ]


def test_a_wrong_database_stops_one_host_and_another_password_is_taken_over(world):
    # The first host that gets a wrong address stays out, the other serves on.
    stored = world.path.parent / "credentials/database_password"
    with visited() as results:
        done = world.play("--extra-vars", "database_address=10.213.0.14:1")
    assert done.returncode != 0 and re.search(r"web1 .*failed=1", done.stdout), done.stdout[-3000:]
    assert set(results) == {200} and serving(world) == (False, True)
    # The host stays out of a run that ends before its turn.
    stopped = world.play("--extra-vars", "repository=file:///nowhere")
    assert stopped.returncode != 0 and serving(world) == (False, True)
    # A password with special characters of SQL and URLs, and a host without access to the database.
    stored.write_text("another password's")
    world.run("db1", "sed -i /10.213.0.13/d /etc/postgresql/*/main/pg_hba.conf")
    started = "runuser -u postgres -- psql -Atc 'SELECT pg_postmaster_start_time()'"
    before = world.run("db1", started)
    done = world.play()
    assert done.returncode == 0, done.stdout[-3000:]
    assert status_of() == 200 and serving(world) == (True, True)
    assert world.run("db1", started) == before
    assert "10.213.0.13/32" in world.run("db1", "cat /etc/postgresql/*/main/pg_hba.conf")


def test_the_proofs_pass_and_leave_nothing(world):
    status, passed = verified(world)
    assert (status, set(passed.values())) == (0, {True})
    count = "from benchapp.models import Author as A; from django.contrib.auth.models import User as U; "
    output = world.run(
        "web2",
        f"benchapp-manage shell -c \"{count}print(A.objects.filter(name__startswith='probe-')"
        '.count(), U.objects.count())"',
    )
    assert output.split()[-2:] == ["0", "0"]


def test_hosts_that_share_neither_cache_nor_key_are_found(world):
    keys = "sed -i s#^CACHE_URL=.*#CACHE_URL=locmemcache://x# site.env"
    keys += " && sed -i s#^SECRET_KEY=.*#SECRET_KEY=$(seq -s a 40)# secrets.env"
    world.run("web2", f"cd /etc/benchapp && cp -a *.env /srv && {keys} && systemctl restart benchapp-gunicorn")
    try:
        status, passed = verified(world)
    finally:
        world.run("web2", "cp -a /srv/site.env /srv/secrets.env /etc/benchapp/ && systemctl restart benchapp-gunicorn")
    assert (status, {name for name, ok in passed.items() if not ok}) == (1, {"hosts-fresh", "hosts-apart"})


def test_a_release_that_one_host_refuses_leaves_both_in_the_rotation(world):
    # Only this host's environment makes the settings fail.
    world.run("web1", f"cd /{SOURCE} && echo '# new' >> manage.py && git {COMMIT}")
    world.run("web2", f"cd /{SOURCE} && echo 'raise SystemExit(\"not here\")' >> config/wsgi.py && git {COMMIT}")
    with visited() as results:
        done = world.play()
    print("a release that fails on one host:", dict(results))
    assert done.returncode != 0 and re.search(r"web2 .*failed=1", done.stdout)
    assert set(results) == {200}
    assert "web2 serves as before: The release is deployed: " in done.stdout
    # The release of before is well there: the other host may be lost meanwhile.
    assert serving(world) == (True, True)
    world.run("web1", "systemctl stop benchapp-gunicorn.socket benchapp-gunicorn")
    assert {status_of() for _ in range(6)} == {200}
    world.run("web1", "systemctl start benchapp-gunicorn")
    world.run("web2", f"cd /{SOURCE} && git -c user.name=x -c user.email=x@example.org revert --no-edit HEAD")
    with visited() as results:
        done = world.play()
    print("a rolling deploy:", dict(results))
    assert done.returncode == 0, done.stdout[-3000:]
    assert set(results) == {200}
    assert serving(world) == (True, True)
    assert "benchapp-static.tgz" not in world.run("web2", "ls /run")


def test_changed_files_are_shown_then_reloaded_and_nothing_else_is_touched(world):
    changed = world.with_layer(STACK, LAYER, compress_pages="off")
    started = "systemctl show --property=MainPID --value benchapp-{}".format
    before = world.run("front1", started("nginx")), world.run("db1", started("memcached"))
    digest = world.run("front1", "cat /etc/benchapp/rendered")
    shown = changed.play("--check", "--diff")
    assert shown.returncode == 0, shown.stdout[-3000:]
    assert re.search(r"^--- before: /etc/benchapp/nginx\.conf$", shown.stdout, re.M)
    assert re.search(r"^-\s*gzip on;$", shown.stdout, re.M)
    assert world.run("front1", "cat /etc/benchapp/rendered") == digest
    with visited() as results:
        done = changed.play()
    print("other files:", dict(results))
    assert done.returncode == 0, done.stdout[-3000:]
    assert set(results) == {200}
    assert (world.run("front1", started("nginx")), world.run("db1", started("memcached"))) == before
    assert "gzip on;" not in world.run("front1", "cat /etc/benchapp/nginx.conf")


def test_a_front_that_lost_its_static_files_gets_them_again(world):
    world.run("front1", "rm -r /srv/benchapp/current/var/static/*")
    done = world.play()
    assert done.returncode == 0, done.stdout[-3000:]
    assert verified(world)[1]["hosts-static"]


def test_a_host_that_cannot_be_reached_is_named_and_the_others_serve(world):
    subprocess.run(["ip", "link", "set", "bh-web2", "down"], check=True)
    try:
        done = world.play("--timeout", "10")
        assert status_of() == 200
    finally:
        subprocess.run(["ip", "link", "set", "bh-web2", "up"], check=True)
    assert done.returncode != 0 and re.search(r"web2 .*unreachable=1", done.stdout), done.stdout[-3000:]
    done = world.play()
    assert done.returncode == 0 and serving(world) == (True, True), done.stdout[-3000:]


def test_load_is_made_and_no_result_has_a_secret(world, tmp_path):
    trusting = world.path.with_name("trusting.ini")
    trusting.write_text(f"{world.path.read_text()}\n[all:vars]\nbenchapp_trust=certificate/fullchain.pem\n")
    argv = [sys.executable, "-m", "bench", "run", "--inventory", trusting, "--workload", "home", "--rate", "10"]
    argv += ["--rounds", "1", "--duration", "2"]
    # The machine's other work is not the question.
    argv += [word for name in guards.BOUNDS for word in ("--guard", f"{name}=off")]
    done = subprocess.run([*argv, "--output", tmp_path / "run"], cwd=paths.KIT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (trial,) = [json.loads(line) for line in (tmp_path / "run/trials.jsonl").read_text().splitlines()]
    assert (trial["status"], trial["figures"]["requests_total"]) == ("ok", 20), trial
    # Each process of each web host may have one.
    hosts = trial["condition"]["hosts"]
    assert 0 < hosts["db1"]["database_connections_peak"] <= 20
    # The units of each host are in its control group, and PostgreSQL in another one.
    assert [name for name, used in hosts.items() if used["cpu_seconds"] is None] == []
    # Version 2 of control groups has no figures of a controller that version 1 has on this machine.
    counted = "memory" in world.run("web1", "cat /sys/fs/cgroup/cgroup.controllers").split()
    assert {bool(used["memory_peak_bytes"]) for used in hosts.values()} == {counted}
    assert hosts["web1"]["requests"] + hosts["web2"]["requests"] > 0
    files = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert b"nginx" in files and not [name for name, secret in world.secrets.items() if secret.encode() in files]


def test_a_web_host_that_vanishes_under_load_costs_no_new_request(world):
    with visited(8) as results:
        subprocess.run(["ip", "link", "set", "bh-web2", "down"], check=True)
        try:
            # Some requests wait for a connection in vain before the host is left out. Its open requests finish when it
            # is back.
            before, deadline = results.total(), time.monotonic() + 120
            while results.total() < before + 40 and time.monotonic() < deadline:
                time.sleep(0.2)
            responses = results.total() - before
        finally:
            subprocess.run(["ip", "link", "set", "bh-web2", "up"], check=True)
    assert set(results) == {200} and responses >= 40


# Short, because the test waits for stale pages to expire after a write.
EXPIRES = {"cache_seconds": 4}
# The client is on the front's host, like a TLS terminator in front elsewhere.
BEHIND = {"listener": "behind", "trusted_proxies": "127.0.0.1/32 10.213.0.0/24"}


@pytest.mark.parametrize(
    ("stack", "layer", "changes"),
    [
        ("nginx-uwsgi", "uwsgi-cache", EXPIRES),
        ("nginx-uwsgi", "nginx-microcache", EXPIRES),
        ("nginx-uwsgi", "nginx-memcached", {}),
        # At each host itself, too: it speaks HTTP.
        ("nginx-gunicorn", "nginx-microcache", EXPIRES),
        ("nginx-gunicorn", "none", {}),
        ("nginx-uwsgi", "varnish", BEHIND),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_layer_promises_of_several_web_hosts_is_proved(world, stack, layer, changes):
    if layer == "varnish" and programs.find(["varnishd"]) is None:
        pytest.skip("program not installed: varnishd")
    done = world.with_layer(stack, layer, **changes).play()
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    status, passed = verified(world, stack, layer, **changes)
    assert (status, [name for name, ok in passed.items() if not ok]) == (0, [])
    assert passed.keys() >= {"hosts-fresh", "hosts-apart", "hosts-cookies"}
