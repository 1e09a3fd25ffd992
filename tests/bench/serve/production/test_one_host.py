"""Production's files: complete, clear of the instrument, and whole or not written."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import jinja2
import pytest

from bench import paths
from bench.errors import BenchError
from bench.serve.catalog import catalog
from bench.serve.deployment import render
from bench.serve.production import one_host, templates
from tests.cases import for_files, production
from tests.deploy.running import runnable
from tests.skips import needs

NOTE, LOGROTATE = "INSTALL.md", "logrotate.conf"
ACCESS, ERRORS = "/var/log/benchapp/access.log", "/var/log/benchapp/apache-error.log"


def lines_of(text: str, key: str) -> list[str]:
    """The values of a key of a unit."""
    return re.findall(rf"(?m)^{key}=(.*)$", text)


def services(files: dict[str, str]) -> dict[str, str]:
    """The units of servers and services, by name."""
    return {Path(name).stem: text for name, text in files.items() if re.fullmatch(r"systemd/.*[^@]\.service", name)}


# ------------------------------------------------------------------------------------------ whole, or not written


@pytest.mark.parametrize("stack", catalog.read().stacks)
def test_production_files_do_not_mention_the_instrument(stack, rendered):
    files = rendered(stack, "fragments")
    assert {"site.env", NOTE, "systemd/benchapp.target"} <= files.keys()
    for server in catalog.read().stacks[stack].servers:
        assert f"systemd/benchapp-{server.name}.service" in files
    for name, text in files.items():
        assert not re.search(r"\bbench\b|benchmark|`verify`", text), f"{name} mentions the instrument"
        assert all(place not in text for place in (str(paths.KIT), str(paths.VENV), "127.0.0.1:0")), name


@pytest.mark.servers
def test_rendering_for_this_machine_writes_what_up_uses(tmp_path, bench):
    runnable("nginx-uwsgi")
    done = bench("render", "nginx-uwsgi", "--local", "--output", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "out" / "conf" / "nginx.conf") in done.stdout.splitlines()
    assert os.environ.get("HOME", "/root") not in (tmp_path / "out" / "conf" / "nginx.conf").read_text()


def test_files_that_cannot_be_rendered_leave_the_directory_as_it_was(tmp_path, monkeypatch):
    # The server's own file comes first and can be written; the install note cannot.
    broken = jinja2.DictLoader({"one-host/INSTALL.md.j2": "{{ nosuch }}"})
    monkeypatch.setattr(templates.ENGINE, "loader", broken)
    monkeypatch.setattr(templates.ENGINE, "cache", None)
    case = for_files("gunicorn", values="production")
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "new", tmp_path / "empty"):
        with pytest.raises(BenchError):
            one_host.write(case, folder)
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, bench, small_disk):
    small_disk.fill()
    target = small_disk.folder / "out"
    done = bench("render", "gunicorn", "--output", target)
    message = f"{target}: cannot be written: No space left on device; name another directory"
    assert (done.returncode, done.stderr) == (2, f"benchapp render: {message}\n")
    assert not target.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take another user's rights")
@pytest.mark.parametrize("exists", [True, False])
def test_a_directory_without_rights_is_one_line(tmp_path, exists):
    closed = Path(tempfile.mkdtemp(dir="/tmp"))
    target = closed / "out"
    if exists:
        target.mkdir()
    closed.chmod(0o755 if exists else 0o700)
    case = for_files("gunicorn", values="production")
    message = f"{re.escape(str(target))}: cannot be .*: Permission denied; name another directory"
    os.seteuid(65534)
    try:
        with pytest.raises(BenchError, match=message):
            one_host.write(case, target)
    finally:
        os.seteuid(0)
        shutil.rmtree(closed)


FLUP = "no, because flup starts a thread for each request without limit, and nothing starts it again"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        # Also for the default, because it was given.
        ("gunicorn --format systemd --local", "--format and --local exclude each other; leave out one of them"),
        ("gunicorn --values bench --format compose", "--format compose needs the places of a host, which bench lacks"),
        ("gunicorn --local --size silver", "--size silver: limits what production runs; leave out --local"),
        ("gunicorn --local --env A=b", "--env is in the files of a host only: leave out --local"),
        (
            "cherokee-uwsgi --format compose --force",
            "cherokee-uwsgi as compose: cherokee is in no Debian package and not in the virtual environment, "
            "so no image can have it",
        ),
        (
            "lighttpd-flup --format kubernetes --force",
            "lighttpd-flup as kubernetes: flup is not in requirements.lock, so no image can have it",
        ),
        (
            "lighttpd-flup --format compose",
            f"lighttpd-flup for production: {FLUP}; --force renders it all the same",
        ),
        *(
            (
                f"gunicorn --env GREETING={shlex.quote(value)}",
                "GREETING: its value begins or ends with a space or a quote, or has a backslash, a line end or a "
                "comment in it, which not every reader of site.env takes as it is; write it on the host",
            )
            for value in ("a # b", "a\\b", "'a'", " a", "a\nb")
        ),
        (
            "gunicorn --set port=8000",
            "--set port: a place, not a value; write it under [places] of a file of your own with "
            'base = "production", and give that with --values',
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(words, message, tmp_path, bench):
    done = bench("render", *shlex.split(words), "--output", tmp_path / "out")
    assert (done.stderr, done.returncode) == (f"benchapp render: {message}\n", 2)
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------------------------------------- what is in them


@pytest.mark.parametrize(
    ("layer", "changes", "unit", "cache_url"),
    [
        ("fragments", {}, "benchapp-memcached", "pymemcache:///run/benchapp/memcached.sock"),
        ("fragments", {"cache": "redis"}, "benchapp-redis", "redis:///run/benchapp/redis.sock"),
        ("nginx-memcached", {"cache": "redis"}, "benchapp-memcached", "pymemcache:///run/benchapp/memcached.sock"),
        ("none", {}, "", ""),
    ],
)
def test_the_service_of_a_layer_is_a_unit_that_the_site_finds(rendered, layer, changes, unit, cache_url):
    files = rendered("nginx-uwsgi", layer, **changes)
    units = services(files)
    assert set(units) == {"benchapp-uwsgi", "benchapp-uwsgi-standin", "benchapp-nginx", unit} - {""}
    assert "".join(lines_of(files["site.env"], "CACHE_URL")) == cache_url
    assert ("The layer's cache is a separate unit" in files[NOTE]) == (layer == "fragments")
    if unit:
        (enabled,) = [line for line in files["benchapp-install"].splitlines() if "enable benchapp.target" in line]
        assert unit in enabled.split()
        (start,) = lines_of(units[unit], "ExecStart")
        assert cache_url.partition("://")[2] in shlex.split(start)
        assert ("" in shlex.split(start), "Type=notify\n" in units[unit]) == ("redis" in unit, "redis" in unit)


@pytest.mark.parametrize("stack", ["nginx-gunicorn", "nginx-gunicorn@cache=redis"])
@pytest.mark.parametrize("production", [True, False])
def test_the_cache_is_a_value_and_a_variant(tmp_path, bench, stack, production):
    words = ["--layer", "page-cache", "--output", tmp_path / "out"]
    words += ["--set", "cache=redis"] if "@" not in stack else []
    words += [] if production else ["--local"]
    done = bench("render", stack, *words)
    lines = done.stderr.splitlines()
    if production:
        assert lines.pop().endswith("out/INSTALL.md")
    assert (done.returncode, lines) == (0, [])
    if production:
        units = {path.name for path in (tmp_path / "out" / "systemd").glob("*.service")}
        assert "benchapp-redis.service" in units
        assert "CACHE_URL=redis:///run/benchapp/redis.sock" in (tmp_path / "out" / "site.env").read_text().splitlines()


@pytest.mark.parametrize(("changes", "held_s"), [({}, 65), ({"client_keepalive_s": 620}, 620)])
def test_a_balancer_closes_its_idle_connections_first(rendered, changes, held_s):
    files = rendered("nginx-uwsgi", listener="behind", **changes)
    assert f"    keepalive_timeout {held_s}s;\n" in files["nginx.conf"]
    assert f"for {held_s} s (`client_keepalive_s`)" in files[NOTE]


@pytest.mark.parametrize("stack", ["nginx-uwsgi", "gunicorn"])
def test_a_site_without_tls_does_not_need_it(stack, rendered):
    files = rendered(stack, listener="plain")
    assert "BENCHAPP_HTTPS=0\n" in files["site.env"]
    assert "The site is served over plain HTTP on 0.0.0.0:443" in files[NOTE]
    assert "privkey.pem" not in files[NOTE]


@pytest.mark.parametrize(
    ("stack", "layer", "switched"),
    [
        ("nginx-gunicorn", "none", True),
        ("gunicorn", "varnish", True),
        ("gunicorn", "page-cache", False),
        ("cherokee-uwsgi", "none", False),
    ],
)
def test_a_maintenance_switch_is_described_if_a_server_has_one(stack, layer, switched, rendered):
    texts = dict(rendered(stack, layer))
    note = texts.pop(NOTE)
    assert ("## Maintenance" in note, "see Maintenance" in note) == (switched, switched)
    assert any("/etc/benchapp/maintenance" in text for text in texts.values()) == switched


def test_a_signal_reloads_only_after_the_test_of_the_files(rendered):
    """The other servers' files are in deploy/examples."""
    check, kill = lines_of(rendered("haproxy-gunicorn")["systemd/benchapp-haproxy.service"], "ExecReload")
    assert check.endswith("-f /etc/benchapp/haproxy.cfg") and kill == "kill -USR2 $MAINPID"


@pytest.mark.parametrize(
    ("stack", "command", "message"),
    [
        ("nginx-gunicorn", ["benchapp-deploy --again", "renew benchapp-nginx reload-or-restart"], "No request is lost"),
        ("nginx-granian", ["benchapp-deploy --again", "renew benchapp-nginx reload-or-restart"], "No request is lost"),
        ("uwsgi", ["renew benchapp-uwsgi restart"], "Requests fail until"),
        ("uvicorn", ["benchapp-deploy --again"], "No request is lost"),
        ("apache-modwsgi", ["benchapp-deploy --again"], "No request is lost"),
    ],
)
def test_a_change_of_the_configuration_loses_nothing_if_the_stack_can(rendered, stack, command, message):
    files = rendered(stack)
    take_over = files["benchapp-install"].partition("take_over() {")[2].partition("--switch ]")[0]
    assert re.findall(r"(?m)^ +(renew .*|benchapp-deploy --again) \|\| return$", take_over) == command
    assert message in files[NOTE].partition("## After a change of the configuration")[2]


@pytest.mark.parametrize(
    ("size", "limits"),
    [
        ("unlimited", ["MemoryHigh=80%", "MemoryMax=90%"]),
        ("silver", ["MemoryLow=384M", "MemoryMax=512M", "MemorySwapMax=0", "CPUQuota=100%"]),
    ],
)
def test_a_size_limits_the_slice_of_all_units(tmp_path, bench, size, limits):
    done = bench("render", "nginx-uwsgi", "--size", size, "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "out" / "systemd"
    lines = (folder / "benchapp.slice").read_text().partition("[Slice]\n")[2].splitlines()
    assert [line for line in lines if not line.startswith("#")] == limits
    assert all("\nSlice=benchapp.slice\n" in unit.read_text() for unit in folder.glob("*[!@].service"))


def test_only_what_binds_a_low_port_has_the_capability(rendered):
    """The examples' stacks have these files in deploy/examples."""
    for stack, layer, changes, able in (
        ("haproxy-gunicorn", "none", {"listener": "behind"}, "benchapp-haproxy"),
        ("nginx-gunicorn", "varnish", {}, "benchapp-haproxy-tls"),
    ):
        units = services(rendered(stack, layer, **changes))
        with_it = [name for name, text in units.items() if "\nCapabilityBoundingSet=CAP_NET_BIND_SERVICE\n" in text]
        assert with_it == [able]


# ------------------------------------------------------------------------------------------------------------ logs


def reopens(server: str, signal: str) -> str:
    return f"systemctl kill --kill-who=main --signal={signal} benchapp-{server}.service"


@pytest.mark.parametrize(
    ("stack", "layer", "rotated"),
    [
        ("nginx-gunicorn", "none", {ACCESS: reopens("nginx", "USR1")}),
        ("nginx-gunicorn", "varnish", {ACCESS: reopens("nginx", "USR1")}),
        ("nginx-gunicorn", "nginx-microcache", {ACCESS: reopens("nginx", "USR1")}),
        ("lighttpd-fastcgi", "none", {ACCESS: reopens("lighttpd", "HUP")}),
        # Apache would have to restart gracefully, which loses requests with mod_wsgi.
        ("apache-modwsgi", "none", {f"{ERRORS} {ACCESS}": "copytruncate"}),
        ("apache-modwsgi", "varnish", {f"{ERRORS} {ACCESS}": "copytruncate"}),
        ("nginx-apache-modwsgi", "varnish", {ERRORS: "copytruncate", ACCESS: reopens("nginx", "USR1")}),
        ("cherokee-uwsgi", "none", {ACCESS: "copytruncate"}),
        # It rotates its own.
        ("caddy-gunicorn", "none", {}),
        ("haproxy-gunicorn", "none", {}),
        ("gunicorn", "none", {}),
    ],
)
def test_a_log_is_rotated_as_its_writer_needs_it_and_belongs_to_its_user(rendered, stack, layer, rotated):
    """Else the unit ends at the next boot, when tmpfiles.conf gives the log to that user, and is started for ever."""
    files = rendered(stack, layer)
    blocks = re.findall(r"^(/[^\n]*) \{$(.*?)^\}$", files.get(LOGROTATE, ""), re.MULTILINE | re.DOTALL)
    assert {names: re.search(r"systemctl .*|copytruncate", block)[0] for names, block in blocks} == rotated
    assert (LOGROTATE in files, "is in no access log" in files[NOTE]) == (bool(rotated), False)
    users = {name: lines_of(text, "User")[0] for name, text in services(files).items()}
    owned = dict(re.findall(r"(?m)^z (\S+) 0640 (\S+) ", files["tmpfiles.conf"]))
    if ACCESS in owned:
        assert owned[ACCESS] == users[f"benchapp-{catalog.read().stack(stack).servers[-1].name}"]
    assert set(re.findall(r"(?m)^    su (\S+) ", files.get(LOGROTATE, ""))) <= {*owned.values()}


@pytest.mark.parametrize(("listener", "named"), [("tls", False), ("behind", True)])
def test_a_cache_without_a_log_before_it_is_named(rendered, listener, named):
    """HAProxy, which terminates TLS before Varnish, has a line for each request."""
    assert ("is in no access log" in rendered("nginx-gunicorn", "varnish", listener=listener)[NOTE]) == named


# ----------------------------------------------------------------------------------------- the note, and the places


def test_the_note_says_where_the_values_stand_that_operators_look_for(rendered):
    files = rendered("nginx-gunicorn")
    table = [line for line in files[NOTE].splitlines() if line.startswith("|")]
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table]
    assert [row[1] for row in rows[2:]] == ["10 MB", "/srv/benchapp/current/var/static", "30 s", "15 s", "4"]
    for _, value, file, words in rows[2:]:
        assert any(words in line and value.split()[0] in line for line in files[file].splitlines()), words


def test_a_render_has_few_files_besides_the_servers_own(rendered):
    files, case = rendered("nginx-gunicorn"), for_files("nginx-gunicorn", values="production")
    of_servers = {name for server in case.servers for name in render.server_files(server, case)}
    assert len(files.keys() - of_servers) <= 30
    assert len(files[NOTE].splitlines()) <= 190


@pytest.mark.parametrize(
    ("stack", "changes", "refused"),
    [("nginx-gunicorn", {}, True), ("nginx-gunicorn", {"bind6": "off"}, False), ("gunicorn", {}, False)],
)
def test_a_host_without_ipv6_is_named_before_anything_is_installed(tmp_path, stack, changes, refused):
    one_host.write(production(stack, **changes), tmp_path / "out")
    script = (tmp_path / "out/benchapp-install").read_text().replace("/proc/net/if_inet6", str(tmp_path / "none"))
    done = subprocess.run(["sh", "-c", script.partition('\nstep "packages"')[0]], capture_output=True, text=True)
    assert (done.returncode, "--set bind6=off" in done.stderr) == (int(refused), refused)


def test_figures_are_on_loopback_addresses_only(rendered):
    """Figures by an exporter are a unit of the server's user, and the exporter's package starts nothing."""
    for stack, exporters in (("nginx-uwsgi", ["nginx"]), ("apache-modwsgi", ["apache"]), ("caddy-gunicorn", [])):
        files, before = rendered(stack, metrics="on"), rendered(stack)
        own = sorted(name for name in files if name.endswith("-metrics.service"))
        assert own == [f"systemd/benchapp-{name}-metrics.service" for name in exporters]
        added = set()
        for name, text in files.items():
            added |= set(text.splitlines()) - set(before.get(name, "").splitlines())
        text = "\n".join(line for line in added if not line.startswith("#"))
        assert set(re.findall(r"([\w.*]*):\d{4,5}\b", text)) == {"127.0.0.1"}
        for name in exporters:
            unit = files[f"systemd/benchapp-{name}-metrics.service"]
            server = files[f"systemd/benchapp-{name}.service"]
            assert re.findall("^User=.*", unit, re.M) == re.findall("^User=.*", server, re.M)
            assert f"prometheus-{name}-exporter" in files["benchapp-install"]
            assert "EnvironmentFile" not in unit and "LoadCredential" not in unit


@pytest.mark.parametrize(
    ("stack", "changes", "let_in"),
    [
        ("nginx-gunicorn", {}, ["tcp dport 22", "tcp dport { 80, 443 }"]),
        ("nginx-gunicorn", {"redirect": "off"}, ["tcp dport 22", "tcp dport { 443 }"]),
        ("gunicorn", {}, ["tcp dport 22", "tcp dport { 80, 443 }"]),
        (
            "nginx-gunicorn",
            {"listener": "behind", "trusted_proxies": "10.0.0.0/8 2001:db8::/32"},
            ["tcp dport 22", "ip saddr 10.0.0.0/8 tcp dport 443", "ip6 saddr 2001:db8::/32 tcp dport 443"],
        ),
    ],
)
def test_the_firewall_lets_in_ssh_and_the_site(stack, changes, let_in, rendered, tmp_path):
    needs("nft")
    text = rendered(stack, **changes)["nftables.conf"]
    assert re.findall(r"^ +(.*dport.*) accept$", text, re.M) == let_in
    assert "policy drop;" in text
    (tmp_path / "nftables.conf").write_text(text)
    # In a separate network, in which nobody has rules.
    words = ["unshare", "--net", "--map-root-user", "nft", "--check", "--file", tmp_path / "nftables.conf"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_backup_leaves_the_host_by_a_program_of_the_operator(rendered, tmp_path):
    """It gets the directory; without one nothing is done; its failure is the job's."""
    (line,) = re.findall(r"^ExecStartPost=(.*)$", rendered("gunicorn")["timers/benchapp-backup.service"], re.M)
    line = line.replace("/etc/benchapp", str(tmp_path))

    def run() -> int:
        return subprocess.run(["sh", "-c", line], capture_output=True).returncode

    assert run() == 0
    program = tmp_path / "backup-copy"
    program.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/copied\n')
    program.chmod(0o755)
    assert run() == 0
    assert (tmp_path / "copied").read_text() == "/var/lib/benchapp/backups\n"
    program.write_text("#!/bin/sh\nexit 3\n")
    assert run() != 0


@pytest.mark.parametrize(
    ("stack", "layer", "adds"),
    [
        ("nginx-gunicorn", "none", "nginx.conf"),
        ("nginx-uwsgi", "nginx-microcache", "nginx.conf"),
        ("nginx-gunicorn", "varnish", "tls.cfg"),
        ("apache-modwsgi", "varnish", "tls.cfg"),
        ("apache-modwsgi", "apache-cache", "httpd.conf"),
        ("caddy-gunicorn", "none", "Caddyfile"),
    ],
)
def test_the_server_that_clients_speak_to_adds_the_id_of_a_request(stack, layer, adds, rendered):
    """None behind it does: a cache would keep the id of another request."""
    files = rendered(stack, layer)
    words = r"add_header|Header always set|http-after-response set-header|header( @\w+)?"
    adding = re.compile(rf"^\s*({words}) X-Request-Id", re.M)
    assert [name for name, text in files.items() if adding.search(text)] == [adds]
    assert "BENCHAPP_REQUEST_IDS=1\n" in files["site.env"]
    assert "X-Request-Id" not in "".join(rendered(stack, layer, access_log="off").values())
