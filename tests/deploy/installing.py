"""A booted machine on which the install note of a stack was followed, line by line."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import paths
from bench.serve.catalog import catalog
from bench.serve.production import one_host
from bench.serve.project.opened import UnderTest
from tests.cases import for_files
from tests.deploy import roots, wheels
from tests.deploy.machine import Machine
from tests.skips import needs

NAME = "example.org"
# Without brotli: to compress static files with it is most of a deploy's work.
PACKAGES = ("Django", "asgiref", "sqlparse", "django-environ", "whitenoise", "pymemcache")
SERVERS = ("gunicorn", "packaging", "pyuwsgi")
UVICORN = ("uvicorn", "uvicorn-worker", "uvloop", "httptools", "wsproto", "h11", "click")
# What the site is made of; no tests, no instrument.
SITE = ("manage.py", "benchapp", "benchapp_overlay", "config", "fixtures", "templates", "static")
DATABASE = "DATABASE_URL=sqlite:////var/lib/benchapp/site.sqlite3"
SOURCE = "/srv/source"
# What the stand-in for certbot was given.
RENEWED = "/srv/renewed/fullchain.pem"
# Less to start; for the rest it makes no difference.
FEW = {"processes": 2, "web_processes": 1}
# Stands in for certbot: has a file requested as the authority would, and hands over what it was given for it.
CERTBOT = """#!/bin/sh -eu
while [ $# -gt 0 ]; do
    case $1 in --webroot-path) webroot=$2;; --deploy-hook) hook=$2;; esac
    shift
done
mkdir -p "$webroot/.well-known/acme-challenge"
echo right > "$webroot/.well-known/acme-challenge/token"
curl -s --resolve example.org:80:127.0.0.1 http://example.org/.well-known/acme-challenge/token | grep -qx right
rm -r "$webroot/.well-known"
RENEWED_LINEAGE=/srv/renewed "$hook"
"""


def prepare(machine: Machine, servers: tuple[str, ...] | None = None, *, modwsgi: bool = False) -> None:
    """Put there what a host gets from elsewhere: the repository, the packages, a certificate, no network.

    servers  the servers that the repository names; None: SERVERS, and for a root of Debian's all of the lock file
    modwsgi  whether a machine with this machine's files has mod_wsgi, which Debian's have
    """
    needs("git", "openssl")
    source = machine.root / SOURCE[1:]
    source.mkdir(parents=True)
    for name in SITE:
        path = paths.KIT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source / name)
    _put_packages(machine, source, servers, modwsgi)
    machine.write("/usr/local/bin/certbot", CERTBOT, 0o755)
    release(machine, "1")
    for folder in ("srv/certificate", "srv/renewed"):
        make_certificate(machine.root / folder, days=90)


def _put_packages(machine: Machine, source: Path, servers: tuple[str, ...] | None, modwsgi: bool) -> None:
    """The packages of Python where pip finds them, and the lists of them in the repository."""
    packed = machine.root / "srv/wheels"
    offline = "[global]\nno-index = true\nfind-links = /srv/wheels\n"
    if machine.release:
        machine.write("/etc/pip.conf", offline)
        python = catalog.read().releases[machine.release].python
        shutil.copytree(wheels.fetched(python, roots.CACHE), packed)
        shutil.copy(wheels.MODWSGI, source)
        named = wheels.LOCK.read_text() if servers is None else wheels.only(*PACKAGES, *servers)
        (source / wheels.LOCK.name).write_text(named)
        return
    # The modules in these are compiled.
    machine.write("/etc/pip.conf", f"{offline}no-compile = true\n")
    python = machine.try_run("python3 -c 'import ensurepip, sys; print(*sys.version_info[:2])'").stdout.split()
    if python != [str(number) for number in sys.version_info[:2]]:
        pytest.skip("program not installed: the distribution's Python with venv, of this virtual environment's version")
    machine.write("/usr/local/sbin/apt-get", "#!/bin/sh\n", 0o755)
    packed.mkdir(parents=True)
    named = SERVERS if servers is None else servers
    (source / wheels.LOCK.name).write_text(wheels.lock(packed, *PACKAGES, *named))
    if modwsgi:
        (source / wheels.MODWSGI.name).write_text(wheels.lock(packed, "mod_wsgi"))


def make_certificate(folder: Path, name: str = NAME, days: int = 2) -> None:
    """A certificate of the site that nobody has signed, with its key, in a new folder."""
    folder.mkdir(parents=True)
    names = f"subjectAltName=DNS:{name},DNS:www.{name}"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", str(days), "-subj", f"/CN={name}", "-addext", names),
            *("-keyout", folder / "privkey.pem", "-out", folder / "fullchain.pem"),
        ],
        check=True,
        capture_output=True,
    )


def replace(machine: Machine, project: Path) -> None:
    """Make another project the one in the repository."""
    shutil.rmtree(machine.root / SOURCE[1:])
    shutil.copytree(project, machine.root / SOURCE[1:], ignore=shutil.ignore_patterns("__pycache__"))
    commit(machine, "another")


def release(machine: Machine, version: str) -> str:
    """Commit a version of the site that says in each page which one it is."""
    base = machine.root / SOURCE[1:] / "templates/base.html"
    page = base.read_text().partition("<!-- version")[0].rstrip()
    base.write_text(f"{page}\n<!-- version:{version}: -->\n")
    return commit(machine, f"version-{version}")


# A page that sleeps for as many seconds as its path says, under each layer, and one that fails.
SLOW = """
import time
from django.http import HttpResponse
from django.urls import path

def slow(request, seconds):
    time.sleep(seconds)
    return HttpResponse("slept", headers={"Cache-Control": "no-store"})

def fails(request):
    raise ArithmeticError

urlpatterns += [path("slow/<int:seconds>/", slow), path("fails/", fails)]
"""


def add_slow_page(machine: Machine) -> None:
    """Add the pages `/slow/SECONDS/` and `/fails/` to the site in the repository."""
    urls = machine.root / SOURCE[1:] / "config/urls.py"
    urls.write_text(urls.read_text() + SLOW)


# A request that takes so many seconds is under way at any time. Nobody else may wait for half of an export; of a slow
# one only the response is looked at, so that it takes less.
EXPORT_S, SLOW_S = 25, 8


def no_one_waits(machine: Machine, command: str, *words: str, slow_s: int = SLOW_S) -> dict[str, Any]:
    """Run a deploy under load while there is a slow request, too; returns what visitors noticed."""
    with visited(machine, "--pairs", "2", "--slow", f"/slow/{slow_s}/", *words) as noticed:
        assert machine.run(command).endswith(" serves\n")
    print(row(machine, command, noticed, slow_s))
    assert noticed["failed"] == []
    assert set(noticed["slow"]) == {200}
    if slow_s == EXPORT_S:
        assert noticed["longest_s"] < EXPORT_S / 2
    return noticed


def row(machine: Machine, what: str, noticed: dict[str, Any], slow_s: int = 0) -> str:
    """A line of a table in Markdown: what visitors noticed of a command, with a request of `slow_s` under way."""
    title = (machine.root / "srv/rendered/INSTALL.md").read_text().partition("\n")[0].removeprefix("# ")
    lost = f"{len(noticed['failed'])} of {noticed['responses'] + len(noticed['failed'])}"
    host = f"Debian {machine.release}" if machine.release else "here"
    return f"| {host} | {title} | {what} | {slow_s or '-'} | {lost} | {noticed['longest_s']} | {noticed['down_s']} |"


def version(machine: Machine) -> str:
    """The version of the site that serves."""
    return response_of(machine, "/authors/")[1].partition("version:")[2].partition(":")[0]


def deploys(machine: Machine, new: str) -> dict[str, Any]:
    """Deploy a version while an export is under way; returns what visitors noticed."""
    release(machine, new)
    return no_one_waits(machine, f"benchapp-deploy {SOURCE}", slow_s=EXPORT_S)


def refused(machine: Machine, command: str) -> str:
    """A deploy's only line, and that the release before serves on without a lost request."""
    before = machine.run("readlink /srv/benchapp/current; ls /srv/benchapp/releases")
    served = version(machine)
    with visited(machine) as noticed:
        done = machine.try_run(command)
    assert done.returncode == 1
    assert (noticed["failed"], noticed["versions"]) == ([], [served])
    assert machine.run("readlink /srv/benchapp/current; ls /srv/benchapp/releases") == before
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stdout
    return lines[0]


def impatient_deploy(machine: Machine) -> str:
    """The command of a deploy that waits 10 s instead of 30 for a new release to be ready."""
    # For the release before, when it is back, as long as otherwise.
    sooner = '$([ "$1" = "$before" ] \\&\\& echo 30 || echo 10)'
    machine.run(f"sed 's/timeout 30 sh/timeout {sooner} sh/' /usr/local/sbin/benchapp-deploy > /srv/sooner")
    assert machine.try_run("cmp /usr/local/sbin/benchapp-deploy /srv/sooner").returncode == 1
    return f"bash /srv/sooner {SOURCE}"


def commit(machine: Machine, message: str) -> str:
    """Commit what changed in the repository there; returns the name of the commit."""
    git = ["git", "-C", machine.root / SOURCE[1:], "-c", "user.name=x", "-c", f"user.email=x@{NAME}"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", message]):
        subprocess.run([*git, *words], check=True, stdin=subprocess.DEVNULL)
    done = subprocess.run([*git, "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def render(machine: Machine, stack: str, layer: str, project: UnderTest | None = None, **changes: object) -> str:
    """Render the stack for production to the machine, by default for the kit's site; returns the install note."""
    of_release = {"debian": machine.release} if machine.release else {}
    chosen = catalog.read().values["production"].changed({**FEW, **of_release, **changes})
    target = machine.root / "srv/rendered"
    shutil.rmtree(target, ignore_errors=True)
    one_host.write(for_files(stack, layer, chosen, project), target)
    return (target / "INSTALL.md").read_text()


def blocks(note: str) -> list[str]:
    """The blocks of commands of an install note, as typed there. A script is a file to write."""
    named = {r"\bDIR/": "/srv/rendered/", r"\bREPOSITORY\b": SOURCE, r"\bYOUR\b": "/srv/certificate"}
    texts = re.findall(r"^ *```\n(.*?)^ *```", note, re.MULTILINE | re.DOTALL)
    for pattern, word in named.items():
        texts = [re.sub(pattern, word, block) for block in texts]
    return [block for block in texts if not block.startswith("#!")]


def install(
    machine: Machine, stack: str, layer: str = "none", project: UnderTest | None = None, **changes: object
) -> None:
    """Follow the install note, and write the database's address into the file of secrets, as it says."""
    before = render(machine, stack, layer, project, **changes).partition("\n## ")[0]
    for block in blocks(before):
        machine.run(block)
        if "benchapp-install" in block:
            machine.run(f"echo {DATABASE} >> /etc/benchapp/secrets.env")


def boots(machine: Machine) -> None:
    """The effect of a boot on the site: sockets and all below /run go, and systemd-tmpfiles makes the directories."""
    machine.run("systemctl stop benchapp.target; rm -rf /run/benchapp")
    machine.run("systemd-tmpfiles --create --remove --boot benchapp.conf; systemctl start benchapp.target")


def uninstall(machine: Machine) -> None:
    """Remove what the note installed, but not the users and the packages."""
    machine.run("systemctl stop benchapp.target 'benchapp-*.timer'")
    machine.run("rm -rf /etc/systemd/system/benchapp* /etc/benchapp /var/lib/benchapp")
    machine.run("rm -rf /srv/benchapp/current /srv/benchapp/releases")
    machine.run("systemctl daemon-reload; systemctl reset-failed 'benchapp*'")


@contextlib.contextmanager
def visited(machine: Machine, *words: str) -> Iterator[dict[str, Any]]:
    """The site while visitors request pages; then what they noticed: see tests.deploy.visitors, and `words` there."""
    argv = ["nsenter", "-t", str(machine.leader), "-n", sys.executable, "-m", "tests.deploy.visitors", *words]
    noticed: dict[str, Any] = {}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=paths.KIT) as visitors:
        try:
            assert visitors.stdout.readline() == "begun\n"
            yield noticed
        finally:
            visitors.terminate()
            noticed.update(json.loads(visitors.stdout.read()))


def response_of(machine: Machine, path: str, *options: str) -> tuple[int, str]:
    """The status and the body of a response over HTTPS; a server that has just been started may not listen yet."""
    argv = ["curl", "-sk", "--max-time", "60", "--retry", "5", "--retry-connrefused", "-w", "\n%{http_code}", *options]
    argv += ["--resolve", f"{NAME}:443:127.0.0.1", f"https://{NAME}{path}"]
    done = subprocess.run(["nsenter", "-t", str(machine.leader), "-n", *argv], capture_output=True, text=True)
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body
