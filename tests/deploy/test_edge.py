"""The edge of production's stacks: what their web servers do with clients before the application sees them."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import brotli
import pytest

from bench.serve.catalog import values
from bench.serve.deployment import deployment
from bench.serve.machine import supervise
from bench.serve.machine.supervise import Process
from tests.cases import resolved
from tests.deploy.certificates import issue
from tests.deploy.production_host import (
    BIND6,
    NAME,
    WILDCARD,
    WILDCARD_HOSTS,
    Host,
    SecureConnection,
    accepts_ciphers,
    make_certificate,
    redirects,
    resumes,
    serving,
    wait_for,
)
from tests.deploy.running import ONE, get, runnable

pytestmark = pytest.mark.servers

# One stack for each server that terminates TLS.
STACKS = [
    ("nginx-uwsgi", "none"),
    ("apache-modwsgi", "none"),
    ("lighttpd-fastcgi", "none"),
    ("caddy-gunicorn", "none"),
    ("haproxy-gunicorn", "none"),
    ("nginx-gunicorn", "varnish"),
]
FOREIGN = "other.example"
# Serves no files.
HAPROXY = "haproxy-gunicorn"
# Serves clients that name no host in the handshake.
LIGHTTPD = "lighttpd-fastcgi"


@dataclass(frozen=True)
class Response:
    """A response as curl has seen it; header names in lower case. Without a response the status is 0."""

    status: int
    version: str
    headers: dict[str, str]
    body: bytes


def curl(host: Host, path: str, *words: str, address: str = "127.0.0.1", name: str = NAME) -> Response:
    """Send a request to the host, over HTTPS if it speaks that; `words` are more options of curl's."""
    port = host.places.port
    scheme = "https" if host.values.names["listener"] == "tls" else "http"
    argv = ["curl", "-sk", "--max-time", "30", "-D", "/dev/stderr", "--resolve", f"{name}:{port}:{address}"]
    done = subprocess.run([*argv, *words, f"{scheme}://{name}:{port}{path}"], capture_output=True)
    lines = done.stderr.decode("latin-1").replace("\r", "").split("\n\n")[0].splitlines()
    if not lines:
        return Response(0, f"curl exit {done.returncode}", {}, done.stdout)
    version, status = lines[0].split()[:2]
    pairs = (line.split(":", 1) for line in lines[1:])
    return Response(int(status), version, {key.lower(): value.strip() for key, value in pairs}, done.stdout)


@pytest.mark.parametrize(("stack", "layer"), STACKS)
def test_https(stack, layer, tmp_path, certificate):
    names = f"{NAME} www.{NAME} {WILDCARD.partition(' ')[2]}"
    host = Host(
        stack, layer, tmp_path, certificate, server_names=names, logins_per_minute=LOGINS, maintenance_pass=PASS
    )
    write_static_file(host)
    with serving(host, ALLOWED_HOSTS=WILDCARD_HOSTS) as processes:
        redirects(host, processes)
        has_one_name(host)
        handshakes(host)
        compressed(host)
        response = curl(host, "/login/", "--http2")
        assert (response.status, response.version) == (200, "HTTP/2")
        assert response.headers["strict-transport-security"] == "max-age=300"
        assert curl(host, "/healthz", "--http1.1").version == "HTTP/1.1"
        if BIND6 != "off":
            assert curl(host, "/healthz", address="[::1]").status == 200
        (tmp_path / "renewed").mkdir()
        takes_over_a_certificate(host, processes, make_certificate(tmp_path / "renewed"), tmp_path / "bin")
        logged(host, processes)
        maintenance(host, processes)
        without_application(host, processes)
        limits_logins(host)


def has_one_name(host: Host) -> None:
    """Another name leads to the first one."""
    assert curl(host, "/login/?a=b").status == 200
    for name in (f"www.{NAME}", f"WWW.{NAME}"):
        response = curl(host, "/login/?a=b", name=name)
        assert (response.status, response.headers["location"]) == (301, f"https://{NAME}/login/?a=b")
    assert curl(host, "/login/?a=b").status == 200


LOGINS = 5
PASS = "the-word-of-the-operator_1"


def limits_logins(host: Host) -> None:
    """Nginx counts what one address posts to the forms of site and admin, whatever the application responds."""
    if host.case.servers[-1].name != "nginx":
        return
    posted = [curl(host, path, "-d", "a=1").status for path in ("/login/", "/admin/login/") * LOGINS]
    assert posted.count(429) >= LOGINS - 2 and posted[0] != 429
    assert 429 not in [curl(host, path, "-d", "a=1").status for path in ("/", "/posts/1/")]
    assert curl(host, "/login/").status != 429


STYLE, STYLE_NAME = b"a { color: red }\n" * 100, "style.0123456789ab.css"


def write_static_file(host: Host) -> None:
    """A file with a hash in its name, and the compressed ones beside it, as collectstatic makes them."""
    style = Path(host.places.static_root) / STYLE_NAME
    style.write_bytes(STYLE)
    style.with_name(f"{STYLE_NAME}.gz").write_bytes(gzip.compress(STYLE))
    style.with_name(f"{STYLE_NAME}.br").write_bytes(brotli.compress(STYLE))


def compressed(host: Host) -> None:
    """Pages and static files, for clients that take it."""
    page = curl(host, "/login/", "-H", "Accept-Encoding: gzip")
    assert page.headers["content-encoding"] == "gzip"
    assert b"</html>" in gzip.decompress(page.body)
    assert "content-encoding" not in curl(host, "/login/").headers
    for coding, accepted in (("br", "gzip, br"), ("gzip", "gzip"), (None, "identity")):
        style = curl(host, f"/static/{STYLE_NAME}", "-H", f"Accept-Encoding: {accepted}")
        assert (style.status, style.headers.get("content-encoding")) == (200, coding)
        assert style.headers["content-type"].startswith("text/css")
        # WhiteNoise has its list, of what collectstatic made.
        assert host.stack.name == HAPROXY or "immutable" in style.headers["cache-control"]
        plain = {"br": brotli.decompress, "gzip": gzip.decompress, None: bytes}[coding](style.body)
        assert plain == STYLE
        assert coding is None or "accept-encoding" in style.headers["vary"].lower()


# The networks of the balancer and of a CDN before it.
BALANCER, CDN = "127.0.0.2", "127.0.0.3"
SECURE = ("-H", "X-Forwarded-Proto: https", "-H", "X-Forwarded-For: 203.0.113.1")


@pytest.mark.parametrize(
    ("stack", "layer"),
    [
        ("nginx-uwsgi", "nginx-microcache"),
        ("apache-modwsgi", "apache-cache"),
        ("lighttpd-fastcgi", "none"),
        ("caddy-gunicorn", "none"),
        ("haproxy-gunicorn", "none"),
        ("nginx-gunicorn", "varnish"),
        ("gunicorn", "none"),
        ("uwsgi", "none"),
        ("granian", "none"),
        ("uvicorn", "none"),
    ],
)
def test_behind_a_balancer(stack, layer, tmp_path, certificate):
    proxies = f"{BALANCER}/32 {CDN}/32 2001:db8::/64"
    host = Host(stack, layer, tmp_path, certificate, listener="behind", trusted_proxies=proxies, maintenance_pass=PASS)
    with serving(host, BENCHAPP_PROBES="1") as processes:
        believed(host)
        # A page that a layer may have cached by then.
        assert [through(host, "/__probe__/page/a/", *SECURE).status for _ in range(3)] == [200] * 3
        for response in (
            through(host, "/__probe__/page/a/"),
            through(host, "/__probe__/page/a/", "-H", "X-Forwarded-Proto: http"),
            # Another address than the balancer's.
            curl(host, "/__probe__/page/a/", *SECURE),
        ):
            assert response.status == 301
            assert re.fullmatch(f"https://{NAME}(:[0-9]+)?/__probe__/page/a/", response.headers["location"])
        # By address, as load balancers request health, over plain HTTP.
        for host_header in (f"127.0.0.1:{host.places.port}", NAME):
            assert through(host, "/healthz", "-H", f"Host: {host_header}").status == 200
        for host_header in ("127.0.0.1", FOREIGN):
            assert through(host, "/login/", *SECURE, "-H", f"Host: {host_header}").status == 400
        if layer == "varnish":
            switched_off_with_what_is_cached(host)
        if layer != "none":
            without_application(host, processes, "--interface", BALANCER, *SECURE)


def switched_off_with_what_is_cached(host: Host) -> None:
    """The cache in front serves no page on while the site is switched off."""
    switch = Path(host.values.names["maintenance_file"])
    switch.touch()
    assert failure(host, "/__probe__/page/a/", "--interface", BALANCER, *SECURE)
    assert through(host, "/__probe__/page/a/", *SECURE, "-H", f"Cookie: maintenance_pass={PASS}").status == 200
    assert through(host, "/healthz?x", *SECURE).status == 200
    switch.unlink()
    assert through(host, "/__probe__/page/a/", *SECURE).status == 200


def test_a_host_without_its_database_is_alive_but_not_ready(tmp_path, certificate):
    host = Host("gunicorn", "none", tmp_path, certificate, listener="behind")
    # A database that takes connections and sends nothing: longer to find out than a closed port.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        (Path(host.places.conf) / "secrets.env").write_text(
            f"SECRET_KEY=x\nDATABASE_URL=postgresql://nobody:x@127.0.0.1:{port}/site\n"
        )
        with serving(host):
            assert curl(host, "/healthz").status == 200
            begun = time.monotonic()
            response = curl(host, "/readyz", "-H", "Host: 127.0.0.1")
            assert (response.status, response.headers["retry-after"]) == (503, "5")
            assert time.monotonic() - begun < 10
            assert curl(host, "/healthz").status == 200


@pytest.mark.parametrize("stack", ["caddy-gunicorn", "haproxy-gunicorn"])
def test_strict_names_are_served_by_name(stack, site_url):
    runnable(stack)
    changes = {**ONE, "listener": "tls", "strict_sni": "on"}
    with deployment.deployed(resolved(stack, database_url=site_url, changes=changes)) as running:
        assert get(f"{running.url}/healthz").status_code == 200


def believed(host: Host) -> None:
    """The load balancer's headers about client and scheme."""
    named = ("-H", "X-Forwarded-Proto: https", "-H", f"X-Forwarded-For: 192.0.2.1, 203.0.113.9, {CDN}")
    inside = json.loads(through(host, "/__probe__/inside", *named).body)
    assert (inside["client"], inside["scheme"]) == ("203.0.113.9", "https")
    with_ports = {
        "203.0.113.9:17085": "203.0.113.9",
        "[2001:db8:1::9]:443": "2001:db8:1::9",
        "2001:db8:1::9": "2001:db8:1::9",
    }
    # Balancers that add the client's port, and the first of several that say the scheme. lighttpd knows neither.
    for client, address in with_ports.items() if host.stack.name != LIGHTTPD else ():
        named = ("-H", "X-Forwarded-Proto: https, http", "-H", f"X-Forwarded-For: {client}, {CDN}:80")
        inside = json.loads(through(host, "/__probe__/inside", *named).body)
        assert (inside["client"], inside["scheme"]) == (address, "https"), client
    login = through(host, "/login/", *SECURE)
    assert login.headers["strict-transport-security"] == "max-age=300"
    assert "Secure" in login.headers["set-cookie"]


def through(host: Host, path: str, *words: str) -> Response:
    """Send a request from the balancer's address."""
    return curl(host, path, "--interface", BALANCER, *words)


def handshakes(host: Host) -> None:
    """Weak ciphers and foreign names are refused before there is a request."""
    assert not accepts_ciphers(host, "AES256-SHA:AES128-GCM-SHA256:ECDHE-RSA-AES256-SHA")
    assert accepts_ciphers(host, host.values.names["tls_ciphers"])
    versions = (ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    assert [resumes(host, version) for version in versions] == [None, True, True]
    assert status_for(host, NAME) == 200
    assert status_for(host, FOREIGN) is None
    assert status_for(host, "") == (200 if host.stack.name == LIGHTTPD else None)
    # A name of ours in the handshake opens no other host.
    assert curl(host, "/login/", "-H", f"Host: {FOREIGN}").status in (400, 421)


def status_for(host: Host, name: str) -> int | None:
    """The status for a client that names `name` in the handshake, and for ours after it; None when refused."""
    connection = SecureConnection(host.places.port, name)
    try:
        connection.request("GET", "/healthz", headers={"Host": NAME})
        return connection.getresponse().status
    except (ssl.SSLError, ConnectionError):
        return None
    finally:
        connection.close()


def logged(host: Host, processes: dict[str, Process]) -> None:
    """Each request is a line with host and time, and after the log was renamed goes to a new one."""
    front = host.case.servers[-1]
    log = Path(host.values.names["access_log"])
    if "haproxy" in front.name:
        # Its standard output, which systemd would collect.
        log = Path(host.places.logs) / f"{host.services()[-1]}.log"
    wait_for(lambda: has_line(host, log, "/before"), True, processes.values())
    if front.reopen:
        log.rename(log.with_suffix(".1"))
        processes[host.services()[-1]].popen.send_signal(getattr(signal, f"SIG{front.reopen}"))
        wait_for(lambda: log.exists() and has_line(host, log, "/after"), True, processes.values())
        assert "/before" in log.with_suffix(".1").read_text()


@pytest.mark.parametrize("stack", ["apache-modwsgi", "nginx-gunicorn"])
def test_behind_varnish_the_log_names_the_client(stack, tmp_path, certificate):
    host = Host(stack, "varnish", tmp_path, certificate)
    log = Path(host.values.names["access_log"])
    with serving(host) as processes:
        curl(host, "/login/?from", "--interface", "127.0.0.5")
        wait_for(lambda: "127.0.0.5 " in log.read_text(), True, processes.values())


def has_line(host: Host, log: Path, path: str) -> bool:
    curl(host, path)
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if path in line]
    ids = "-" if host.stack.name == LIGHTTPD else "[A-Za-z0-9@_-]{20,36}"
    wanted = (
        f'"host":"{NAME}.*"duration":.*X-Request-Id' if "caddy" in host.stack.name else rf"{NAME}(:\d+)? {ids} [\d.]+"
    )
    if host.case.servers[-1].name == "nginx":
        # Which application responded, for the share of each.
        wanted += r' [\d.]+ "unix:[^"]+"$'
    return any(re.search(wanted, line) for line in lines)


def maintenance(host: Host, processes: dict[str, Process]) -> None:
    """A file switches the site off, but not the pages for a balancer."""
    switch = Path(host.values.names["maintenance_file"])
    switch.touch()
    wait_for(lambda: curl(host, "/login/").status, 503, processes.values())
    assert failure(host, "/login/")
    assert failure(host, "/", "-X", "POST", "-H", "Content-Length: 0")
    for cookie in (f"maintenance_pass={PASS}", f"a=b; maintenance_pass={PASS}; c=d"):
        assert curl(host, "/login/", "-H", f"Cookie: {cookie}").status == 200
    for cookie in (
        "maintenance_pass=",
        "maintenance_pass=off",
        f"maintenance_pass={PASS}x",
        f"x_maintenance_pass={PASS}",
        PASS,
    ):
        assert failure(host, "/login/", "-H", f"Cookie: {cookie}")
    assert curl(host, "/healthz").status == 200
    # A certificate is renewed meanwhile; `redirects` has put a challenge there.
    url = f"http://{NAME}:{host.http_port}/.well-known/acme-challenge/to_Ken-1"
    command = ["curl", "-s", "--resolve", f"{NAME}:{host.http_port}:127.0.0.1", url]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "to_Ken-1.thumbprint"
    switch.unlink()
    wait_for(lambda: curl(host, "/login/").status, 200, processes.values())


def without_application(host: Host, processes: dict[str, Process], *words: str) -> None:
    """All servers except the outermost have stopped; in a chain of one, no server is left to respond."""
    inner = host.services()[:-1]
    supervise.stop([processes[name] for name in inner])
    # Over HTTP/2 lighttpd resets the stream of a body that it has no use for, sometimes before the client has the page.
    posted = ("-d", "a=1", *(["--http1.1"] if host.stack.name == LIGHTTPD else []))
    for more in ((), ("-I",), posted):
        assert not inner or failure(host, "/login/", *words, *more)


def failure(host: Host, path: str, *words: str) -> bool:
    """True if it responds with the page for failures."""
    response = curl(host, path, *words)
    assert response.status in (502, 503, 504)
    assert response.headers["retry-after"] == "30"
    assert response.headers["content-type"].startswith("text/html")
    for name, value in values.derived(host.values.names)["page_headers"].items():
        assert value in response.headers[name.lower()], name
    return "-I" in words or b"<h1>Not available now</h1>" in response.body


def unfit(folder: Path, refused: Callable[[str], bool]) -> None:
    """An expired certificate, or one without a name of the site, is refused."""
    chain = folder / "fullchain.pem"
    issue(folder, (NAME, f"www.{NAME}"), days=-1)
    assert refused(f"{chain}: it has expired")
    issue(folder, (f"www.{NAME}", "other.test"), days=1)
    assert refused(f"{chain}: it is not for {NAME}, one of the site's names")


def takes_over_a_certificate(host: Host, processes: dict[str, Process], renewed: Path, bin_folder: Path) -> None:
    """Certbot's deploy hook, with a stand-in for systemd that does what the unit's ExecReload says."""
    front = host.services()[-1]
    bin_folder.mkdir()
    # As its user: a server's own test may hand its directories to another one.
    as_user = shlex.join([*host.identity.prefix, "sh", "-ec", "\n".join(host.lines(front, "ExecReload"))])
    (bin_folder / "systemctl").write_text(
        f'#!/bin/sh -e\ntest "$*" = "try-reload-or-restart {front}.service"\n'
        f"export MAINPID={processes[front].pid}\n{as_user}\n"
    )
    (bin_folder / "systemctl").chmod(0o755)

    def hook(folder: Path) -> tuple[int, str]:
        env = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "RENEWED_LINEAGE": str(folder)}
        script = Path(host.places.conf) / "benchapp-certificate"
        done = subprocess.run(["sh", str(script)], env=env, capture_output=True, text=True)
        return done.returncode, done.stderr

    before = certificate_of(host)
    (wrong := renewed / "wrong").mkdir()
    shutil.copy(renewed / "fullchain.pem", wrong)
    key = wrong / "privkey.pem"

    def refused(reason: str) -> bool:
        return hook(wrong) == (1, f"benchapp-certificate: {reason}; nothing is changed\n")

    assert refused(f"{key}: no such file, or not for you to read")
    key.write_text("no key")
    assert refused(f"{key}: no key without a password")
    shutil.copy(Path(host.places.tls) / "privkey.pem", key)
    assert refused(f"{wrong}: the key does not match the certificate")
    unfit(wrong, refused)
    assert certificate_of(host) == before
    assert hook(renewed)[0] == 0
    expected = ssl.PEM_cert_to_DER_cert((renewed / "fullchain.pem").read_text())
    wait_for(lambda: certificate_of(host), expected, processes.values())
    modes = {path.name: oct(path.stat().st_mode)[-3:] for path in Path(host.places.tls).iterdir()}
    assert {name: mode for name, mode in modes.items() if name.startswith("privkey")} == {"privkey.pem": "640"}


def certificate_of(host: Host) -> bytes | None:
    connection = SecureConnection(host.places.port, NAME)
    try:
        connection.connect()
        return connection.sock.getpeercert(binary_form=True)
    finally:
        connection.close()
