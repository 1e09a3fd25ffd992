"""A host of production's in a directory, with the servers of its units, for requests of tests."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import http.client
import os
import shlex
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import pytest

from bench import paths, programs
from bench.serve.catalog import catalog
from bench.serve.catalog.server import Server
from bench.serve.deployment import case as cases
from bench.serve.deployment import config_check, render
from bench.serve.deployment.case import CannotRun
from bench.serve.deployment.database import NO_DATABASE
from bench.serve.machine import ports, supervise
from bench.serve.production import one_host
from bench.serve.project.opened import UnderTest
from tests.cases import for_files, kit
from tests.deploy.running import FEW, ONE

NAME = "example.org"
# If the kernel has IPv6.
BIND6 = "::1" if socket.has_dualstack_ipv6() else "off"
# Names below domains, as servers and as the site are told of them.
WILDCARD, WILDCARD_HOSTS = f"{NAME} *.example.com .example.net", f"{NAME},.example.com,.example.net"
# Its redirect cannot choose by the name. Production refuses its stacks unless forced.
CHEROKEE = "cherokee"
# What its certificate is for.
CERTIFIED = (NAME, f"www.{NAME}", "*.example.com", "example.net", "*.example.net", "*.a.example.net")


class Host:
    """A host of production's in a directory: the same values and templates, the places moved there.

    It serves the kit's site without a project.
    """

    def __init__(
        self,
        stack: str,
        layer: str,
        folder: Path,
        certificate: Path,
        project: UnderTest | None = None,
        **changes: str,
    ):
        project = project or kit()
        composed = cases.resolve(project, stack, layer, database=NO_DATABASE)
        if isinstance(composed, CannotRun):
            pytest.skip(composed.reason)
        self.identity = project.worker(folder)
        chosen = catalog.read().values["production"]
        self.http_port = ports.free_port()
        places = self._below(folder, project)
        own = {"http_port": self.http_port, "access_log": str(folder / "logs" / "access.log"), "bind6": BIND6}
        own |= {"maintenance_file": str(folder / "conf" / "maintenance"), "acme_webroot": str(folder / "acme")}
        # Instances are separate units.
        few = FEW if composed.servers[0].instances else ONE
        self.values = dataclasses.replace(chosen.changed({**few, **own, **changes}), places=places)
        self.places = one_host.production_places(self.values)
        self.stack = composed.stack
        self.case = for_files(stack, layer, self.values, project)
        for name in ("run", "logs", "store", "static"):
            (folder / name).mkdir()
        shutil.copytree(certificate, folder / "tls")
        modules = composed.modules
        for server in self.case.servers:
            (folder / "run" / server.name).mkdir()
        self.written = one_host.write(self.case, Path(self.places.conf))
        for server in self.stack.servers:
            # As the install note's commands do.
            for name, template in server.host_modules.items():
                Path(render.text(template, places, server.name)).symlink_to(modules[server.name][name])
        (Path(self.places.conf) / "secrets.env").write_text("SECRET_KEY=x\nDATABASE_URL=sqlite://:memory:\n")
        self.identity.give_tree(folder)

    def _below(self, folder: Path, project: UnderTest) -> dict[str, str | int]:
        """The places of a host, all below a folder."""
        return {
            "project": str(project.folder),
            "venv": str(paths.VENV),
            "static_root": str(folder / "static"),
            # By number: `install` in scripts takes it for a group.
            **dict.fromkeys(("user", "web_user", "group", "tls_group"), str(self.identity.gid)),
            "cache_user": "www-data",
            "data": str(folder),
            "media_root": str(folder / "media"),
            "bind": "127.0.0.1",
            "port": ports.free_port(),
            **{name: str(folder / name) for name in ("conf", "run", "logs", "store", "tls")},
        }

    def environment(self, unit: str) -> dict[str, str]:
        """The files that systemd would give the unit."""
        text = "".join(Path(name).read_text() for name in self.lines(unit, "EnvironmentFile"))
        credentials = {"CREDENTIALS_DIRECTORY": self.places.conf} if self.lines(unit, "LoadCredential") else {}
        pairs = [line for line in text.splitlines() if line and not line.startswith("#")]
        pairs += self.lines(unit, "Environment")
        return {
            "PATH": os.environ["PATH"],
            "HOME": self.places.run,
            **credentials,
            # On a host the site's own settings lead there.
            "BENCHAPP_STATIC_ROOT": self.places.static_root,
            **{line.partition("=")[0]: line.partition("=")[2] for line in pairs},
        }

    def units(self) -> list[Path]:
        """The started units; a deploy starts stand-ins, and a failure starts the alert of the operator."""
        files = (Path(self.places.conf) / "systemd").iterdir()
        return sorted(path for path in files if not path.stem.endswith(("-standin", "@")))

    def services(self) -> list[str]:
        """The names of the services, the inner before the outer."""
        chain = [server.name for server in self.case.servers]
        names = [path.stem for path in self.units() if path.suffix == ".service"]
        return sorted(names, key=lambda name: (chain.index(self.server(name).name), name))

    def server(self, unit: str) -> Server | None:
        """The server of the chain whose unit it is, or that of one of its instances."""
        name = unit.removeprefix("benchapp-")
        servers = [server for server in self.case.servers if f"{name}-".startswith(f"{server.name}-")]
        return max(servers, key=lambda server: len(server.name), default=None)

    def lines(self, unit: str, key: str) -> list[str]:
        """The values of a key in a unit."""
        text = (Path(self.places.conf) / "systemd" / f"{unit}.service").read_text()
        return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}=")]

    def command(self, unit: str) -> list[str]:
        """The unit's command, in the foreground, without the words by which it takes a socket from systemd."""
        words = shlex.split(self.lines(unit, "ExecStart")[0].replace("daemon on;", "daemon off;"))
        server = self.server(unit)
        taken = list(server.inherits) if server and isinstance(server.inherits, tuple | list) else []
        return words[: -len(taken)] if taken and words[-len(taken) :] == taken else words


def make_certificate(folder: Path) -> Path:
    """A directory with a certificate of all NAMES and its key, as the servers want them."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("program not installed: openssl")
    key, chain = folder / "privkey.pem", folder / "fullchain.pem"
    argv = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"]
    argv += ["-addext", "subjectAltName=" + ",".join(f"DNS:{name}" for name in CERTIFIED)]
    subprocess.run([*argv, "-keyout", str(key), "-out", str(chain)], check=True, capture_output=True)
    (folder / "both.pem").write_bytes(chain.read_bytes() + key.read_bytes())
    return folder


def refused_by_servers(host: Host) -> dict[str, str]:
    """The errors of each server's own test of its files, by the server's name; empty when all accept them."""
    # With the programs of the host's virtual environment.
    placed = one_host.in_production(host.case, "127.0.0.1")
    problems = {}
    for server in placed.case.servers:
        if server.check:
            context = render.context_of(server, placed)
            argv = [*host.identity.prefix, *render.argv(server.check, context, server.name)]
            problems[server.name] = config_check.run_check(argv, host.environment(f"benchapp-{server.name}"), server)
    return {name: problem for name, problem in problems.items() if problem}


def refused_by_systemd(host: Host) -> list[str]:
    """The complaints of systemd about the units; empty when it accepts them."""
    systemd_analyze = programs.find(["systemd-analyze"])
    if systemd_analyze is None:
        pytest.skip("program not installed: systemd-analyze")
    timed = (Path(host.places.conf) / "timers").iterdir()
    done = subprocess.run(
        [str(systemd_analyze), "verify", "--man=no", *map(str, [*host.units(), *timed])], capture_output=True, text=True
    )
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "benchapp" in line]
    return ours or ([f"exit status {done.returncode}"] if done.returncode else [])


def start(host: Host, unit: str, env: dict[str, str]) -> supervise.Process:
    """A unit's program, started as systemd would, with the link to the socket that it makes."""
    for line in host.lines(unit, "ExecStartPost"):
        own, *link = [*line.split()[4:], ""][:2]
        if own:
            Path(*link).unlink(missing_ok=True)
            Path(*link).symlink_to(own)
    log = Path(host.places.logs) / f"{unit}.log"
    project = Path(host.places.project)
    return supervise.start(host.command(unit), log, host.identity, env=host.environment(unit) | env, cwd=project)


@contextlib.contextmanager
def serving(host: Host, **env: str):
    """The units' programs, by the unit's name, from when they serve."""
    processes: dict[str, supervise.Process] = {}
    placed = one_host.in_production(host.case, "127.0.0.1")
    inner = [address for server in host.case.servers[:-1] for address in placed.listens[server.name]]
    with contextlib.ExitStack() as stack:
        if placed.places.port == one_host.PLAIN_PORT or any(address.port for address in inner):
            stack.enter_context(_alone())
        notified = {name: stack.enter_context(Notified()) for name in host.services()}
        try:
            for name in host.services():
                processes[name] = start(host, name, notified[name].env | env)
            # Nginx's processes each leave out an instance that was not there yet.
            for address in inner:
                wait_for(address.accepts, True, processes.values())
            wait_for(lambda: response_of(host, host.case.project.health, NAME)[0], 200, processes.values())
            for name in host.services():
                notified[name].as_declared(host.lines(name, "Type"), processes.values())
            yield processes
        finally:
            supervise.stop(list(processes.values()))


@contextlib.contextmanager
def _alone():
    """Servers behind another one listen on ports that are the same on every production host: one test at a time."""
    with (Path(tempfile.gettempdir()) / "benchapp-tests-production-ports.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Notified:
    """The messages of a unit's program to systemd, which would stop it after some seconds without a sign of life."""

    def __init__(self) -> None:
        # A path for a socket is short.
        self._folder = tempfile.TemporaryDirectory(prefix="notify-", dir="/tmp")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._texts: list[str] = []
        path = Path(self._folder.name) / "socket"
        self._socket.bind(str(path))
        for opened in (path, path.parent):
            opened.chmod(0o777)
        self.env = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "400000"}

    def __enter__(self) -> Notified:
        return self

    def __exit__(self, *_: object) -> None:
        # No server here sends signs of life, so that no unit has WatchdogSec=.
        assert "WATCHDOG=1" not in self._received()
        self._socket.close()
        self._folder.cleanup()

    def as_declared(self, types: list[str], processes) -> None:
        """True if it says that it serves, and its unit waits for that."""
        if types == ["notify"]:
            wait_for(lambda: "READY=1" in self._received(), True, processes)
        assert (types == ["notify"]) == ("READY=1" in self._received())

    def wait_ready(self) -> None:
        """Return the moment it says that it serves; raises TimeoutError after 40 s without a word."""
        self._socket.settimeout(40)
        while "READY=1" not in self._texts:
            self._texts += self._socket.recv(4096).decode().splitlines()
        # With a time limit, recv() would wait whatever its flags say.
        self._socket.settimeout(None)

    def _received(self) -> list[str]:
        with contextlib.suppress(BlockingIOError):
            while True:
                self._texts += self._socket.recv(4096, socket.MSG_DONTWAIT).decode().splitlines()
        return self._texts


def wait_for(question, expected, processes, timeout_s=40):
    """Return once the response is the expected one; the front may be up before the application is."""
    deadline = time.monotonic() + timeout_s
    got = None
    while got != expected:
        for process in processes:
            if error := process.died():
                raise error from None
        assert time.monotonic() < deadline, f"the response is {got}"
        time.sleep(0.05)
        with contextlib.suppress(OSError):
            got = question()


class SecureConnection(http.client.HTTPSConnection):
    """To a port of this machine, naming `name` in the handshake; for none with an empty name."""

    def __init__(self, port: int, name: str):
        super().__init__("127.0.0.1", port, timeout=30, context=ssl._create_unverified_context())
        self.name = name

    def connect(self):
        opened = socket.create_connection((self.host, self.port), self.timeout)
        self.sock = self._context.wrap_socket(opened, server_hostname=self.name or None)


def response_of(host: Host, path: str, name: str) -> tuple[int, str | None]:
    if host.values.names["listener"] == "tls":
        return _response_of(SecureConnection(host.places.port, NAME), path, name)
    return _response_of(http.client.HTTPConnection("127.0.0.1", host.places.port, timeout=30), path, name)


def plain_response_of(host: Host, path: str, name: str) -> tuple[int, str | None]:
    return _response_of(http.client.HTTPConnection("127.0.0.1", host.http_port, timeout=30), path, name)


def redirects(host: Host, processes: dict[str, supervise.Process]) -> None:
    """Every name of WILDCARD is served over HTTPS, and plain HTTP leads there; no other name is."""
    for name in (NAME, "a.example.com", "example.net", "b.a.example.net"):
        # Of several application servers some may not be up yet.
        wait_for(lambda name=name: response_of(host, "/healthz", name)[0], 200, processes.values())
        assert plain_response_of(host, "/posts/?a=b", name) == (301, f"https://{name}/posts/?a=b")
    if CHEROKEE not in host.stack.name:
        # A client names the port if it is not 80.
        assert plain_response_of(host, "/posts/?a=b", f"{NAME}:{host.http_port}") == (301, f"https://{NAME}/posts/?a=b")
        serves_challenges(host)
    # Apache has more to say: 421, misdirected.
    assert response_of(host, "/login/", "other.example")[0] in (400, 421)
    if CHEROKEE not in host.stack.name:
        assert plain_response_of(host, "/", "other.example") in ((400, None), (301, f"https://{NAME}/"))


def serves_challenges(host: Host) -> None:
    """Certbot's files in the webroot are served over plain HTTP; nothing else of that directory is."""
    folder = Path(host.values.names["acme_webroot"])
    challenges = folder / ".well-known" / "acme-challenge"
    challenges.mkdir(parents=True)
    (folder / "secret").write_text("x")
    (challenges / "to_Ken-1").write_text("to_Ken-1.thumbprint")
    host.identity.give_tree(folder)

    def body(path: str) -> tuple[int, str]:
        url = f"http://{NAME}:{host.http_port}/.well-known/acme-challenge/{path}"
        words = ["--path-as-is", "--resolve", f"{NAME}:{host.http_port}:127.0.0.1", "-w", "\n%{http_code}", url]
        text, _, status = subprocess.run(["curl", "-s", *words], capture_output=True, text=True).stdout.rpartition("\n")
        return int(status), text

    assert body("to_Ken-1") == (200, "to_Ken-1.thumbprint")
    assert body("nosuch")[0] == 404
    assert body("../../secret")[0] in (301, 400, 404)
    assert body("%2e%2e/%2e%2e/secret")[0] in (301, 400, 404)


def resumes(host: Host, version: ssl.TLSVersion) -> bool | None:
    """True if a second handshake with a version of TLS resumes the session of the first; None if it is refused."""
    context = ssl._create_unverified_context()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.minimum_version = context.maximum_version = version
    # OpenSSL itself offers nothing older than TLS 1.2 otherwise.
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    session = None
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", host.places.port), 30) as opened:
            try:
                with context.wrap_socket(opened, server_hostname=NAME, session=session) as secure:
                    # With TLS 1.3 the session comes with the response.
                    secure.sendall(f"GET /healthz HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode())
                    assert secure.recv(12) == b"HTTP/1.1 200"
                    session, reused = secure.session, secure.session_reused
            except ssl.SSLError:
                return None
    return reused


def accepts_ciphers(host: Host, ciphers: str) -> bool:
    """True if it speaks TLS 1.2 with one of these."""
    context = ssl._create_unverified_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(ciphers + ":@SECLEVEL=0")
    with socket.create_connection(("127.0.0.1", host.places.port), timeout=10) as opened:
        try:
            context.wrap_socket(opened, server_hostname=NAME).close()
        except (ssl.SSLError, ConnectionError):
            return False
    return True


def _response_of(connection, path, name):
    try:
        connection.request("GET", path, headers={"Host": name})
        response = connection.getresponse()
        return response.status, response.getheader("Location")
    except TimeoutError as error:
        raise AssertionError("no response in time") from error
    finally:
        connection.close()
