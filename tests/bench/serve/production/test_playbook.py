"""The playbook's scripts, as a host runs them; deploying to real hosts is in test_deployed.py."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

from bench import paths, programs
from bench.cli import main
from bench.serve.deployment import render
from bench.serve.machine import ports
from bench.serve.machine.supervise import Address
from bench.serve.production import inventory
from tests.bench.measure.hosts.deployed_world import commit
from tests.deploy.running import runnable

TEMPLATES = paths.DEPLOY / "production" / "several-hosts"
PAGE = (paths.KIT / "docs" / "hosts.md").read_text("utf-8")


def tasks(name: str = "playbook.yml") -> dict[str, dict[str, Any]]:
    """The playbook's tasks by their names."""
    read = yaml.safe_load((TEMPLATES / name).read_text("utf-8"))
    return {task.get("name", ""): task | {"vars": play.get("vars", {})} for play in read for task in play["tasks"]}


def sh(script: str, folder: Path, stdin: str = "", **commands: str) -> subprocess.CompletedProcess[str]:
    """Run a script of the shell that finds these commands first."""
    for name, body in commands.items():
        path = folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    env = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "FOLDER": str(folder)}
    return subprocess.run(["/bin/sh", "-c", script], input=stdin, capture_output=True, text=True, env=env, cwd=folder)


def looked(folder: Path, repository: str, commit: str = "", ready: str = "true", active: str = "true") -> list[str]:
    """The playbook's view of a web host: whether it serves, its release, the newest commit of the repository."""
    engine = jinja2.Environment()
    engine.filters["quote"] = shlex.quote
    (task,) = [task for name, task in tasks().items() if name.startswith("Whether all of it runs")]
    known: dict[str, Any] = {"repository": repository, "units": ["one", "two"], "current": "none", "ready_now": ready}
    known |= {"commit": commit} if commit else {}
    known["refs"] = engine.compile_expression(task["vars"]["refs"].strip("{} "))(**known)
    script = engine.from_string(task["ansible.builtin.shell"]).render(known)
    # Ansible takes empty lines at the ends away.
    return sh(script, folder, systemctl=active).stdout.strip().splitlines()


@pytest.mark.parametrize(
    ("active", "ready", "wanted"),
    [("true", "true", "serves"), ('[ "$3" != two ]', "true", "down"), ("true", "false", "down")],
)
def test_a_host_serves_when_each_unit_runs_and_it_is_ready(tmp_path, active, ready, wanted):
    assert looked(tmp_path, "x", ready=ready, active=active)[0] == wanted


def test_a_repository_that_cannot_be_read_is_unknown_and_no_command(tmp_path):
    assert looked(tmp_path, "nowhere; touch made", "v1; touch made") == ["serves", "none", "unknown"]
    assert not (tmp_path / "made").exists()


def test_a_tag_is_the_commit_that_it_names(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_text("a")
    commit(source, "first")
    git = ["git", "-C", str(source), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run([*git, "tag", "-a", "-m", "one", "v1"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    # A branch's name, none, and a commit, which no repository lists.
    for wanted in ("v1", "", head):
        assert looked(tmp_path, str(source), wanted)[2] == head


def test_ansible_has_nothing_to_say_against_the_playbook():
    """Each exception is named, with its reason, at its task."""
    lint = programs.find(["ansible-lint"])
    if lint is None:
        pytest.skip("package not installed: ansible-lint")
    words = [str(lint), "--profile", "production", "--offline", "--nocolor", *map(str, sorted(TEMPLATES.glob("*.yml")))]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_certificate_is_taken_over_again_after_a_failure(tmp_path):
    script = tasks()["The certificate is taken over"]["ansible.builtin.shell"]
    (tmp_path / "fullchain.pem").write_text("one")
    tried = 'echo "$*" >> tried; [ ! -e bad ]'
    (tmp_path / "bad").touch()
    assert sh(script, tmp_path, **{"benchapp-certificate": tried}).returncode == 1
    (tmp_path / "bad").unlink()
    for output in ("changed\n", ""):
        done = sh(script, tmp_path, **{"benchapp-certificate": tried})
        assert (done.returncode, done.stdout) == (0, output)
    assert (tmp_path / "tried").read_text() == ".\n.\n"


def test_neither_differences_nor_failures_show_a_secret():
    named = tasks()
    assert named["The certificate"]["diff"] is False
    assert named["Secrets"]["no_log"] and named["It listens to them, and has the site's user and database"]["no_log"]
    assert "replace(database_password, '***')" in named["It could not be set up"]["ansible.builtin.fail"]["msg"]


@pytest.mark.parametrize(
    ("state", "stands_in", "changed", "done"),
    [
        # The cache has all of its settings in its unit.
        ("active", False, "", ["reload benchapp-nginx", "start benchapp-memcached", "restart benchapp-uwsgi"]),
        ("failed", True, "", ["start benchapp-nginx", "start benchapp-memcached", "restart benchapp-uwsgi"]),
        # Another unit serves meanwhile, unless the socket of both is another one.
        (
            "active",
            True,
            "benchapp-uwsgi.service\n",
            ["reload benchapp-nginx", "start benchapp-memcached", "deploy --again"],
        ),
        (
            "active",
            True,
            "benchapp-memcached.service\nbenchapp-uwsgi.socket\nbenchapp-uwsgi.service\n",
            [
                "reload benchapp-nginx",
                "restart benchapp-memcached.service benchapp-memcached",
                "restart benchapp-uwsgi.service benchapp-uwsgi.socket benchapp-uwsgi",
            ],
        ),
    ],
)
def test_what_has_changed_is_restarted_and_the_rest_reloaded_or_not_touched(tmp_path, state, stands_in, changed, done):
    (task,) = yaml.safe_load((TEMPLATES / "servers.yml").read_text("utf-8"))
    units = ["benchapp-nginx", "benchapp-memcached", "benchapp-uwsgi"]
    known = {"conf": str(tmp_path), "units": units, "reloads": units[::2], "applications": units[2:]}
    known["stand_ins"] = units[2:] if stands_in else []
    script = jinja2.Environment().from_string(task["ansible.builtin.shell"]).render(known)
    for name, text in (("restart", changed), ("rendered", "new"), ("loaded", "old"), ("out", "web1\n")):
        (tmp_path / name).write_text(text)
    systemctl = f'[ "$1" = is-active ] && {{ [ {state} = active ]; exit; }}; echo "$@" >> $FOLDER/log'
    commands = {"systemctl": systemctl, "benchapp-deploy": 'echo "deploy $@" >> $FOLDER/log'}
    result = sh(script, tmp_path, **commands)
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "log").read_text().splitlines() == done
    assert (tmp_path / "loaded").read_text() == "new" and not (tmp_path / "restart").exists()
    # What fails is done again by the next run.
    (tmp_path / "loaded").write_text("old")
    assert sh(script, tmp_path, systemctl='[ "$1" = is-active ]').returncode != 0
    assert (tmp_path / "loaded").read_text() == "old"


def test_servers_of_an_earlier_deployment_are_stopped_and_removed(tmp_path):
    (task,) = yaml.safe_load((TEMPLATES / "earlier.yml").read_text("utf-8"))
    kept = ["benchapp-gunicorn.service", "benchapp-backup.timer", "benchapp-backup.service"]
    for name in (*kept, "benchapp-uwsgi.service", "benchapp-uwsgi.socket", "nginx.service"):
        (tmp_path / name).touch()
    # Somebody's own settings of a unit.
    (tmp_path / "benchapp-uwsgi.service.d").mkdir()
    script = jinja2.Environment().from_string(task["ansible.builtin.shell"]).render(unit_files=kept)
    script = script.replace("/etc/systemd/system", str(tmp_path))
    assert sh(script, tmp_path, systemctl="false").returncode != 0 and (tmp_path / "benchapp-uwsgi.service").exists()
    assert sh(script, tmp_path, systemctl='echo "$@" >> $FOLDER/log').returncode == 0
    assert (tmp_path / "log").read_text().splitlines() == [
        "disable --now benchapp-uwsgi.service",
        "disable --now benchapp-uwsgi.socket",
        "daemon-reload",
    ]
    units = {path.name for path in tmp_path.iterdir()} - {"bin", "log"}
    assert units == {*kept, "nginx.service", "benchapp-uwsgi.service.d"}


def stored(password: str) -> str:
    """PostgreSQL's stored form of a password."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b"salt", 4096)
    key = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    words = (base64.b64encode(word).decode() for word in (b"salt", key, b"server"))
    return "SCRAM-SHA-256$4096:{}${}:{}".format(*words)


class Database:
    """A PostgreSQL of files: what the script reads and does is in `log`."""

    def __init__(self, folder: Path, hosts: list[str], known: str, listens: str = "localhost, 10.0.0.20") -> None:
        self.folder = folder
        self.cluster = folder / "postgresql/16/main"
        (self.cluster / "conf.d").mkdir(parents=True)
        (self.cluster / "pg_hba.conf").write_text("local all all peer\n" + "".join(map(self.access, hosts)))
        (folder / "database").mkdir()
        (folder / "database/postgresql.conf").write_text("listen_addresses = 'localhost, 10.0.0.20'\n")
        (folder / "database/postgresql.service.conf").write_text("[Unit]\n")
        (folder / "benchapp.conf").write_text("[Unit]\n")
        self.bound = "10.0.0.20"
        (self.cluster / "conf.d/benchapp.conf").write_text("listen_addresses = 'localhost, 10.0.0.20'\n")
        (folder / "rows").write_text(f"{listens}\n{known}\n")

    @staticmethod
    def access(host: str) -> str:
        return f"hostssl benchapp benchapp 10.0.0.{host}/32 scram-sha-256\n"

    def set_up(self, hosts: list[str], password: str = "right") -> tuple[int, list[str]]:
        """Run the script; how many things it changed, and what it had systemd and PostgreSQL do."""
        (self.folder / "database/pg_hba.conf").write_text("# Who may.\n" + "".join(map(self.access, hosts)))
        template = (TEMPLATES / "benchapp-database.j2").read_text("utf-8")
        script = render.text(template, {"conf": str(self.folder)}, "x")
        psql = (
            "read -r statement\n"
            'case "$statement" in\n'
            '"SHOW listen"*) head -n 1 $FOLDER/rows ;;\n'
            '"SHOW port"*) echo 5432 ;;\n'
            "*rolpassword*) tail -n 1 $FOLDER/rows ;;\n"
            "SELECT*) echo 1 ;;\n"
            '*) echo "${statement#*; }" >> $FOLDER/log ;;\n'
            "esac"
        )
        systemctl = '[ "$1" = enable ] || echo "$1" >> $FOLDER/log'
        (self.folder / "log").write_text("")
        script = script.replace("/etc/postgresql", str(self.folder / "postgresql"))
        script = script.replace("/etc/systemd/system/postgresql@.service.d", str(self.folder))
        bound = f"echo 'LISTEN 0 244 {self.bound}:5432 0.0.0.0:*'"
        done = sh(script, self.folder, f"{password}\n", runuser=psql, systemctl=systemctl, ss=bound)
        assert done.returncode == 0, done.stderr
        return done.stdout.count("changed"), (self.folder / "log").read_text().splitlines()

    @property
    def lets_in(self) -> list[str]:
        return re.findall(
            r"^hostssl benchapp benchapp 10\.0\.0\.(\d+)/32", (self.cluster / "pg_hba.conf").read_text(), re.M
        )


def test_the_database_lets_in_the_web_hosts_and_no_others_without_a_restart(tmp_path):
    database = Database(tmp_path, ["11", "12"], stored("right"))
    assert database.set_up(["11", "12"]) == (0, ["reload"])
    assert database.set_up(["11", "12", "13"]) == (1, ["reload"]) and database.lets_in == ["11", "12", "13"]
    assert database.set_up(["13"]) == (1, ["reload"]) and database.lets_in == ["13"]
    access = database.cluster / "pg_hba.conf"
    assert access.read_text().startswith("local all all peer\n")
    # Those of an earlier deployment, without TLS.
    access.write_text(access.read_text().replace("hostssl", "host"))
    assert database.set_up(["13"]) == (1, ["reload"]) and database.lets_in == ["13"]
    assert "host " not in access.read_text()


def test_an_address_that_was_not_there_when_it_started_needs_a_restart(tmp_path):
    database = Database(tmp_path, ["11"], stored("right"))
    database.bound = "127.0.0.1"
    assert database.set_up(["11"]) == (1, ["restart"])
    (tmp_path / "benchapp.conf").unlink()
    database.bound = "10.0.0.20"
    assert database.set_up(["11"]) == (1, ["daemon-reload", "reload"])
    assert (tmp_path / "benchapp.conf").read_text() == "[Unit]\n"


def test_another_address_needs_a_restart_and_another_password_the_role_again(tmp_path):
    database = Database(tmp_path, ["11"], stored("right"), listens="localhost")
    assert database.set_up(["11"]) == (1, ["restart"])
    assert database.set_up(["11"], "it's new") == (
        2,
        ["restart", "ALTER ROLE benchapp LOGIN PASSWORD 'it''s new'"],
    )


def ready(folder: Path, speaks: str, port: int, path: str = "/") -> subprocess.CompletedProcess[str]:
    """The verdict of a web host's command on the server at a port."""
    known = {"speaks": speaks, "ready": path, "server_name": "example.org", "ready_at": [Address("127.0.0.1", port)]}
    script = folder / "benchapp-ready"
    script.write_text(render.text((TEMPLATES / "benchapp-ready.j2").read_text("utf-8"), known, "x"))
    return subprocess.run([sys.executable, script, "0"], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("pieces", "status"), [([b"\x01\x06", b"Status: 2", b"00 OK\r\n"], 0), ([b"HTTP"], 1), ([], 1)]
)
def test_a_response_that_comes_in_pieces_is_read_to_its_status(tmp_path, pieces, status):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def response():
            taken, _ = server.accept()
            with taken:
                taken.recv(4096)
                for piece in pieces:
                    taken.sendall(piece)
                    time.sleep(0.05)

        responding = threading.Thread(target=response)
        responding.start()
        result = ready(tmp_path, "fastcgi", server.getsockname()[1])
        responding.join()
    assert (result.returncode, "no response that fastcgi knows" in result.stderr) == (status, bool(status))


APPLICATION = """
def application(environ, start_response):
    right = environ["PATH_INFO"] == "/ready" and environ["HTTP_HOST"] == "example.org"
    start_response("200 OK" if right and environ["HTTP_X_FORWARDED_PROTO"] == "https" else "503 Not ready", [])
    return [b""]
"""


@pytest.mark.servers
def test_a_host_gets_requests_over_the_protocol_that_its_server_speaks(tmp_path):
    program = programs.find(["uwsgi"])
    if program is None:
        pytest.skip("program not installed: uwsgi")
    (tmp_path / "ready_or_not.py").write_text(APPLICATION)
    listens = {name: ports.free_port() for name in ("http", "uwsgi", "fastcgi", "scgi")}
    words = [f"--{'' if name == 'uwsgi' else f'{name}-'}socket=127.0.0.1:{port}" for name, port in listens.items()]
    argv = [program, *words, "--module=ready_or_not", "--need-app", "--die-on-term", "--disable-logging"]
    log = tmp_path / "log"
    with log.open("wb") as written, subprocess.Popen(argv, cwd=tmp_path, stdout=written, stderr=written) as server:
        try:
            while "spawned uWSGI" not in log.read_text() and server.poll() is None:
                time.sleep(0.02)
            for name, port in listens.items():
                assert ready(tmp_path, name, port, "/ready").returncode == 0, (name, log.read_text())
                stderr = ready(tmp_path, name, port, "/other").stderr
                assert stderr == f"benchapp-ready: 127.0.0.1:{port}: status 503: journalctl -u 'benchapp-*'\n"
        finally:
            server.terminate()
    assert "Connection refused" in ready(tmp_path, "uwsgi", listens["uwsgi"]).stderr


@pytest.mark.servers
def test_the_page_has_an_inventory_and_commands_for_it(tmp_path, monkeypatch):
    program = programs.find(["ansible-playbook"])
    if program is None:
        pytest.skip("program not installed: ansible-playbook")
    runnable("nginx-uwsgi")
    monkeypatch.chdir(tmp_path)
    (text,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)
    Path("hosts.yml").write_text(text)
    Path("mysite.toml").write_text('base = "production"\nserver_names = "shop.example.org"\n')
    assert [host.name for host in inventory.read(Path("hosts.yml")).of("web")] == ["web1", "web2"]
    blocks = [block for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S) if not language]
    lines = [line for block in blocks for line in block.splitlines()]
    assert {name for line in lines for name in re.findall(r"(?:-i|--inventory) (\S+)", line)} == {"hosts.yml"}
    for line in lines:
        if line.startswith("benchapp "):
            main.parser().parse_args(shlex.split(line)[1:])
    (render_line,) = (line for line in lines if " render " in line)
    assert main.main(shlex.split(render_line)[1:]) == 0
    assert sorted(path.stem for path in Path("out/host_vars").iterdir()) == ["db1", "front1", "web1", "web2"]
    (_, line) = (line for line in lines if line.startswith("ansible-playbook"))
    done = subprocess.run([program, *shlex.split(line)[1:], "--syntax-check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
