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

from bench import paths, programs
from bench.catalog import catalog
from bench.errors import BenchError
from bench.production import host as one_host
from bench.production import templates
from bench.serve import render
from tests.cases import for_files
from tests.deploy.running import runnable


@pytest.mark.parametrize("stack", catalog.read().stacks)
def test_production_files_do_not_mention_the_instrument(stack, tmp_path):
    layer = "fragments"
    written = one_host.write(for_files(stack, layer, "production"), tmp_path / "out")
    names = {str(path.relative_to(tmp_path / "out")) for path in written}
    assert {"site.env", "INSTALL.md", "systemd/benchapp.target"} <= names
    for server in catalog.read().stacks[stack].servers:
        assert f"systemd/benchapp-{server.name}.service" in names
    for path in written:
        text = path.read_text("utf-8")
        assert not re.search(r"\bbench\b|benchmark|`verify`", text), f"{path} mentions the instrument"
        assert str(paths.PROJECT) not in text, f"{path} names this checkout"
        assert str(paths.VENV) not in text, f"{path} names this virtual environment"
        assert "127.0.0.1:0" not in text


@pytest.mark.servers
def test_rendering_for_this_machine_writes_what_up_uses(tmp_path, bench):
    runnable("nginx-uwsgi")
    done = bench("render", "nginx-uwsgi", "--to", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "out" / "conf" / "nginx.conf") in done.stdout.splitlines()
    assert os.environ.get("HOME", "/root") not in (tmp_path / "out" / "conf" / "nginx.conf").read_text()


def test_files_that_cannot_be_rendered_leave_the_directory_as_it_was(tmp_path, monkeypatch):
    # The server's own file comes first and can be written; the install note cannot.
    broken = jinja2.DictLoader({"host/INSTALL.md": "{{ nosuch }}"})
    monkeypatch.setattr(templates.ENGINE, "loader", broken)
    monkeypatch.setattr(templates.ENGINE, "cache", None)
    case = for_files("gunicorn", values="production")
    for folder in (tmp_path / "new", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(BenchError):
            one_host.write(case, folder)
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, bench, small_disk):
    small_disk.fill()
    target = small_disk.folder / "out"
    done = bench("render", "gunicorn", "--values", "production", "--to", target)
    says = f"{target}: cannot be written: No space left on device; name another directory"
    assert (done.returncode, done.stderr) == (2, f"bench render: {says}\n")
    assert not target.exists()


@pytest.mark.parametrize(
    ("layer", "changes", "unit", "cache_url"),
    [
        ("fragments", {}, "benchapp-memcached", "pymemcache:///run/benchapp/memcached.sock"),
        ("fragments", {"cache": "redis"}, "benchapp-redis", "redis:///run/benchapp/redis.sock"),
        ("nginx-memcached", {"cache": "redis"}, "benchapp-memcached", "pymemcache:///run/benchapp/memcached.sock"),
        ("none", {}, "", ""),
    ],
)
def test_the_service_of_a_layer_is_a_unit_that_the_site_finds(tmp_path, layer, changes, unit, cache_url):
    chosen, out = catalog.read().values["production"].changed(changes), tmp_path / "out"
    one_host.write(for_files("nginx-uwsgi", layer, chosen), out)
    units = {path.stem: path.read_text() for path in (out / "systemd").glob("*.service")}
    assert set(units) == {"benchapp-uwsgi", "benchapp-nginx", unit} - {""}
    env = dict(line.split("=", 1) for line in (out / "site.env").read_text().splitlines() if line[0] != "#")
    assert env.get("CACHE_URL", "") == cache_url
    note = (out / "INSTALL.md").read_text()
    assert ("The layer's cache is a unit of its own" in note) == (layer == "fragments")
    if unit:
        (enabled,) = [line for line in note.splitlines() if "systemctl enable benchapp.target" in line]
        assert unit in enabled.split()
        (start,) = [line.partition("=")[2] for line in units[unit].splitlines() if line.startswith("ExecStart=")]
        assert cache_url.partition("://")[2] in shlex.split(start)
        assert ("" in shlex.split(start), "Type=notify\n" in units[unit]) == ("redis" in unit, "redis" in unit)
    if unit and (systemd_analyze := programs.find(["systemd-analyze"])) and programs.find(shlex.split(start)[:1]):
        argv = [str(systemd_analyze), "verify", str(out / "systemd" / f"{unit}.service")]
        assert subprocess.run(argv, capture_output=True, text=True).stderr == ""


@pytest.mark.parametrize("stack", ["nginx-uwsgi", "gunicorn"])
def test_a_site_without_tls_does_not_ask_for_it(stack, tmp_path):
    chosen = catalog.read().values["production"].changed({"listener": "plain"})
    one_host.write(for_files(stack, values=chosen), tmp_path / "out")
    assert "BENCHAPP_HTTPS=0\n" in (tmp_path / "out" / "site.env").read_text()
    note = (tmp_path / "out" / "INSTALL.md").read_text()
    assert "The site is served over plain HTTP on 0.0.0.0:443" in note
    assert "privkey.pem" not in note


def test_behind_a_balancer_the_port_of_https_is_noted(tmp_path, bench):
    done = bench("render", "gunicorn", "--values", "production", "--set", "listener=behind", "--to", tmp_path / "o")
    said = "note: listener=behind: plain HTTP on port 443; another is `port` under [places] of a values file\n"
    assert (done.returncode, done.stderr) == (0, said)
    own = tmp_path / "own.toml"
    own.write_text('base = "production"\nlistener = "behind"\n[places]\nport = 8000\n')
    done = bench("render", "gunicorn", "--values", own, "--to", tmp_path / "p")
    assert (done.returncode, done.stderr) == (0, "")
    done = bench("render", "gunicorn", "--values", "production", "--set", "port=8000", "--to", tmp_path / "q")
    assert done.returncode == 2 and "--set port: a place, not a value; write it under [places]" in done.stderr


@pytest.mark.parametrize(
    ("stack", "layer", "switched"),
    [
        ("nginx-gunicorn", "none", True),
        ("gunicorn", "varnish", True),
        ("gunicorn", "view-cache", False),
        ("cherokee-uwsgi", "none", False),
    ],
)
def test_a_maintenance_switch_is_described_where_a_server_has_one(stack, layer, switched, tmp_path):
    chosen = catalog.read().values["production"]
    one_host.write(for_files(stack, layer, chosen), tmp_path / "out")
    texts = {path: path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    note = texts.pop(tmp_path / "out" / "INSTALL.md")
    assert ("## Maintenance" in note, "see Maintenance" in note) == (switched, switched)
    assert any("/etc/benchapp/maintenance" in text for text in texts.values()) == switched


def test_production_with_a_server_in_front_ends_tls_before_it(tmp_path, bench):
    done = bench("render", "nginx-uwsgi", "--layer", "varnish", "--values", "production", "--to", tmp_path / "o")
    assert (done.returncode, done.stderr) == (
        0,
        "note: layer varnish: varnish ends no TLS, so that redirect and HTTP/2 go with it; "
        "put a server before it that has them, as INSTALL.md says\n",
    )
    files = {path.name: path.read_text() for path in (tmp_path / "o").rglob("*") if path.is_file()}
    assert "benchapp-certificate" not in files
    assert "-a 127.0.0.1:8000 " in files["benchapp-varnish.service"]
    assert "tls=/run/benchapp/varnish-tls.sock,PROXY" in files["benchapp-varnish.service"]
    assert "listen 127.0.0.1:8001" in files["nginx.conf"]
    assert 'backend = "/run/benchapp/varnish-tls.sock"' in files["INSTALL.md"]
    assert "BENCHAPP_FRONT=1" in files["site.env"]


@pytest.mark.parametrize(
    ("stack", "listens"), [("nginx-gunicorn", "/run/benchapp/gunicorn.sock"), ("uvicorn", "127.0.0.1:8000")]
)
def test_the_socket_of_a_server_that_can_inherit_it_is_a_unit(tmp_path, stack, listens):
    one_host.write(for_files(stack, values="production"), tmp_path / "out")
    (socket,) = (tmp_path / "out" / "systemd").glob("*.socket")
    assert f"\nListenStream={listens}\n" in socket.read_text()
    assert f"\nRequires={socket.name}\n" in socket.with_suffix(".service").read_text()


def test_the_kernel_hands_connections_to_the_new_socket_of_a_server_that_opens_one(tmp_path):
    for stack in ("caddy-gunicorn", "nginx-gunicorn"):
        one_host.write(for_files(stack, values="production"), tmp_path / stack)
    assert "\n-net.ipv4.tcp_migrate_req = 1\n" in (tmp_path / "caddy-gunicorn" / "sysctl.conf").read_text()
    assert "sysctl -p /etc/sysctl.d/benchapp.conf\n" in (tmp_path / "caddy-gunicorn" / "INSTALL.md").read_text()
    assert not (tmp_path / "nginx-gunicorn" / "sysctl.conf").exists()
    assert "sysctl" not in (tmp_path / "nginx-gunicorn" / "INSTALL.md").read_text()


@pytest.mark.parametrize(
    ("stack", "server", "commands"),
    [
        ("nginx-gunicorn", "nginx", ["-t -c /etc/benchapp/nginx.conf", "kill -HUP $MAINPID"]),
        ("nginx-gunicorn", "gunicorn", ["--check-config config.wsgi:application", "kill -HUP $MAINPID"]),
        ("apache-modwsgi", "apache", ["-f /etc/benchapp/httpd.conf -t", "kill -USR1 $MAINPID"]),
        ("haproxy-gunicorn", "haproxy", ["-f /etc/benchapp/haproxy.cfg", "kill -USR2 $MAINPID"]),
        # Its program refuses a bad file itself.
        ("caddy-gunicorn", "caddy", ["--address unix//run/benchapp/caddy-admin.sock"]),
        ("nginx-uwsgi", "uwsgi", ["touch /run/benchapp/uwsgi.reload"]),
    ],
)
def test_a_signal_reloads_only_after_the_test_of_the_files(tmp_path, stack, server, commands):
    one_host.write(for_files(stack, values="production"), tmp_path / "out")
    unit = (tmp_path / "out" / "systemd" / f"benchapp-{server}.service").read_text()
    found = [line.partition("=")[2] for line in unit.splitlines() if line.startswith("ExecReload=")]
    assert len(found) == len(commands)
    assert all(line.endswith(end) for line, end in zip(found, commands, strict=True))


@pytest.mark.parametrize(
    ("stack", "command", "says"),
    [
        ("nginx-gunicorn", "restart benchapp-gunicorn && systemctl reload benchapp-nginx", "No request is lost"),
        ("nginx-granian", "restart benchapp-granian && systemctl reload benchapp-nginx", "Requests fail until"),
        ("uwsgi", "restart benchapp-uwsgi", "Requests fail until"),
        ("uvicorn", "restart benchapp-uvicorn", "No request is lost"),
        # It restarts no server that would lose requests by it; the environment alone needs that.
        ("apache-modwsgi", "reload benchapp-apache", "`systemctl restart benchapp-apache`; requests fail"),
    ],
)
def test_the_note_restarts_what_loses_nothing_by_it(tmp_path, stack, command, says):
    one_host.write(for_files(stack, values="production"), tmp_path / "out")
    change = (tmp_path / "out" / "INSTALL.md").read_text().partition("## After a change of the configuration")[2]
    assert f"\nsystemctl daemon-reload\nbenchapp-check && systemctl {command}\n```" in change
    assert says in change


@pytest.mark.parametrize(
    ("size", "limits"),
    [("unlimited", []), ("silver", ["MemoryLow=384M", "MemoryMax=512M", "MemorySwapMax=0", "CPUQuota=100%"])],
)
def test_a_size_limits_the_slice_of_all_units(tmp_path, bench, size, limits):
    done = bench("render", "nginx-uwsgi", "--values", "production", "--size", size, "--to", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "out" / "systemd"
    assert (folder / "benchapp.slice").read_text().partition("[Slice]\n")[2].splitlines() == limits
    assert all("\nSlice=benchapp.slice\n" in unit.read_text() for unit in folder.glob("*.service"))


@pytest.mark.parametrize(
    ("stack", "layer", "changes", "able"),
    [
        ("nginx-gunicorn", "none", {}, ["nginx"]),
        ("apache-modwsgi", "none", {}, ["apache"]),
        ("haproxy-gunicorn", "none", {"listener": "behind"}, ["haproxy"]),
        ("nginx-gunicorn", "varnish", {}, []),
        *((stack, "none", {}, []) for stack in ("granian", "gunicorn", "uwsgi", "granian-asgi", "gunicorn-uvicorn")),
    ],
)
def test_only_what_binds_a_low_port_has_the_capability(tmp_path, stack, layer, changes, able):
    chosen = catalog.read().values["production"].changed(changes)
    one_host.write(for_files(stack, layer, chosen), tmp_path / "out")
    units = {path.stem: path.read_text() for path in (tmp_path / "out" / "systemd").glob("*.service")}
    with_it = [name for name, text in units.items() if "\nCapabilityBoundingSet=CAP_NET_BIND_SERVICE\n" in text]
    assert with_it == [f"benchapp-{name}" for name in able]


@pytest.mark.parametrize(
    ("stack", "layer"),
    [
        *(("apache-modwsgi", layer) for layer in ("none", "varnish")),
        *(("nginx-gunicorn", layer) for layer in ("none", "varnish", "nginx-microcache")),
        ("nginx-apache-modwsgi", "varnish"),
        ("caddy-gunicorn", "none"),
    ],
)
def test_a_log_belongs_to_the_user_of_the_unit_that_writes_it(tmp_path, stack, layer):
    """Else the unit ends at the next boot, when tmpfiles.conf gives the log to that user, and is started for ever."""
    one_host.write(for_files(stack, layer, "production"), tmp_path / "out")
    units = (tmp_path / "out" / "systemd").glob("*.service")
    users = {path.stem: re.search(r"(?m)^User=(.*)$", path.read_text())[1] for path in units}
    writer = f"benchapp-{catalog.read().stack(stack).servers[-1].name}"
    owned = re.findall(r"(?m)^z (\S+) 0640 (\S+) ", (tmp_path / "out" / "tmpfiles.conf").read_text())
    assert dict(owned)["/var/log/benchapp/access.log"] == users[writer]
    rotated = tmp_path / "out" / "logrotate.conf"
    assert set(re.findall(r"(?m)^    su (\S+) ", rotated.read_text() if rotated.exists() else "")) <= {
        user for _, user in owned
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's rights are taken by root alone")
@pytest.mark.parametrize("made", [True, False])
def test_a_directory_without_rights_is_one_line(tmp_path, made):
    closed = Path(tempfile.mkdtemp(dir="/tmp"))
    target = closed / "out"
    if made:
        target.mkdir()
    closed.chmod(0o755 if made else 0o700)
    case = for_files("gunicorn", values="production")
    says = f"{re.escape(str(target))}: cannot be .*: Permission denied; name another directory"
    os.seteuid(65534)
    try:
        with pytest.raises(BenchError, match=says):
            one_host.write(case, target)
    finally:
        os.seteuid(0)
        shutil.rmtree(closed)


def test_the_note_says_where_the_values_stand_that_operators_look_for(tmp_path):
    one_host.write(for_files("nginx-gunicorn", values="production"), tmp_path / "out")
    note = (tmp_path / "out" / "INSTALL.md").read_text()
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in note.splitlines() if line.startswith("|")]
    assert [row[1] for row in rows[2:]] == ["10 MB", "/srv/benchapp/current/var/static", "30 s", "15 s", "4"]
    for _, value, file, words in rows[2:]:
        lines = (tmp_path / "out" / file).read_text().splitlines()
        assert any(words in line and value.split()[0] in line for line in lines), words


def test_a_render_has_few_files_besides_the_servers_own(tmp_path):
    case = for_files("nginx-gunicorn", values="production")
    written = one_host.write(case, tmp_path / "out")
    of_servers = {name for server in case.servers for name in render.server_files(server, case)}
    assert len([path for path in written if str(path.relative_to(tmp_path / "out")) not in of_servers]) <= 22
    assert len((tmp_path / "out" / "INSTALL.md").read_text().splitlines()) <= 140


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("gunicorn", "--as", "compose"), "--as compose needs the places of a host: use --values production"),
        (("gunicorn", "--as", "systemd"), "--as systemd needs the places of a host: use --values production"),
        (("gunicorn", "--size", "silver"), "--size silver: limits what production runs; use --values production"),
        (
            ("cherokee-uwsgi", "--values", "production", "--as", "compose", "--force"),
            "cherokee-uwsgi as compose: cherokee is in no Debian package and not in the virtual environment, "
            "so no image can have it",
        ),
        (
            ("lighttpd-flup", "--values", "production", "--as", "kubernetes", "--force"),
            "lighttpd-flup as kubernetes: flup is not in requirements.lock, so no image can have it",
        ),
        (
            ("lighttpd-flup", "--values", "production", "--as", "compose"),
            "lighttpd-flup for production: no, because flup starts a thread for each request without limit, "
            "and nothing starts it again; --force renders it all the same",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(words, says, tmp_path, bench):
    done = bench("render", *words, "--to", tmp_path / "out")
    assert (done.stderr, done.returncode) == (f"bench render: {says}\n", 2)
    assert not (tmp_path / "out").exists()
