"""A world of hosts with the site deployed by the playbook: front, two web hosts, cache and database."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench import paths, programs
from bench.serve.catalog import catalog
from bench.serve.production import inventory
from bench.serve.production import several_hosts as several
from bench.serve.production.inventory import WEB, Inventory
from tests import cases
from tests.bench.measure.hosts.world import Member, members, standing
from tests.deploy import wheels
from tests.deploy.installing import PACKAGES, SITE
from tests.deploy.production_host import make_certificate

# The last ones are for the command that makes rows.
SERVERS = ("gunicorn", "packaging", "psycopg2-binary", "pyuwsgi", "rich", "markdown-it-py", "mdurl", "Pygments")
# Files needed for proofs on web hosts, as in the whole repository.
COMMANDS = ("bench/serve/inside", "bench/__init__.py")
SOURCE, WHEELS = "srv/source", "srv/wheels"
PIP = f"[global]\nno-index = true\nfind-links = /{WHEELS}\nno-compile = true\n"
# As in the inventory of docs/hosts.md, except the load host.
MEMBERS = members(front=["front1"], web=["web1", "web2"], db=["db1"], cache=["db1"], load=["db1"])
NEEDED = ("ansible-playbook", "git", "nginx", "memcached", "postgres", "nft")


@dataclass(frozen=True)
class DeployedWorld:
    """The world, its inventory, and its rendered directory.

    refused      output of the playbook without a certificate
    previewed    output of the playbook's dry run
    first        output of the first real run
    first_s      seconds of the first run
    processes    the command lines of all processes meanwhile, including the hosts'
    """

    path: Path
    rendered: Path
    refused: str = ""
    previewed: str = ""
    first: str = ""
    first_s: float = 0.0
    processes: frozenset[str] = frozenset()

    @property
    def inventory(self) -> Inventory:
        return inventory.read(self.path)

    def run(self, host: str, script: str) -> str:
        """The output of a successful script on a host."""
        (entry,) = (item for item in self.inventory.hosts if item.name == host)
        done = subprocess.run(entry.argv(script), capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{host}: {script}\n{done.stdout}{done.stderr}"
        return done.stdout

    @property
    def secrets(self) -> dict[str, str]:
        """Secrets by name; one line of the private key."""
        credentials = {
            path.name: path.read_text().strip() for path in sorted((self.path.parent / "credentials").iterdir())
        }
        key = (self.path.parent / "certificate/privkey.pem").read_text().splitlines()
        return {**credentials, "private key": key[len(key) // 2]}

    def with_layer(self, stack: str, layer: str, **changes: object) -> DeployedWorld:
        """The same hosts with the files of another case, not yet deployed."""
        folder = self.path.with_name(f"{stack} {layer}")
        return replace(self, rendered=_rendered(self.path, stack, layer, folder, changes))

    def play(self, *words: str, certificate: bool = True) -> subprocess.CompletedProcess[str]:
        """Play the playbook, with the certificate unless it must exist already."""
        argv = [programs.find(["ansible-playbook"]), "-i", self.path, self.rendered / "playbook.yml"]
        argv += ["--extra-vars", f"repository=file:///{SOURCE}", *words]
        if certificate:
            argv += ["--extra-vars", f"certificate={self.rendered.with_name('certificate')}"]
        env = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_NOCOWS": "1"}
        return subprocess.run(argv, capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL)


def _rendered(path: Path, stack: str, layer: str, folder: Path, changes: dict[str, object]) -> Path:
    chosen = catalog.read().values["production"].changed(changes)
    several.write(cases.for_files(stack, layer, chosen), inventory.read(path), folder)
    return folder


def put_site(members: Sequence[Member], folder: Path) -> None:
    """Copy the repository and the packages to web hosts, because they have no network."""
    source, packed = folder / "source", folder / "wheels"
    packed.mkdir()
    source.mkdir()
    (source / "requirements.lock").write_text(wheels.lock(packed, *PACKAGES, *SERVERS))
    for name in (*SITE, *COMMANDS):
        path = paths.KIT / name
        shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__")) if path.is_dir() else (
            shutil.copy(path, source / name)
        )
    commit(source, "first")
    for member in members:
        if WEB in member.groups:
            shutil.copytree(source, member.root / SOURCE)
            shutil.copytree(packed, member.root / WHEELS)
            (member.root / "etc/pip.conf").write_text(PIP)


def commit(source: Path, message: str) -> None:
    """Commit the contents of the directory."""
    author = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*author, "commit", "-q", "-m", message]):
        subprocess.run(["git", "-C", source, *words], check=True, stdin=subprocess.DEVNULL)


@contextmanager
def processes_seen() -> Iterator[set[str]]:
    """The command lines of all processes while the block lasts."""
    command_lines: set[str] = set()
    ended = threading.Event()

    def record() -> None:
        while not ended.wait(0.02):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    command_lines.add(path.read_text(errors="replace"))

    looking = threading.Thread(target=record)
    looking.start()
    try:
        yield command_lines
    finally:
        ended.set()
        looking.join()


@contextmanager
def deployed(folder: Path, stack: str, layer: str) -> Iterator[DeployedWorld]:
    """The site on two web hosts while the block lasts, with a few rows."""
    with standing(MEMBERS, 1000) as world:
        put_site(MEMBERS, folder)
        (folder / "certificate").mkdir()
        # The front's self-signed certificate.
        make_certificate(folder / "certificate")
        path = folder / "hosts.ini"
        path.write_text(world)
        deployment = DeployedWorld(path, _rendered(path, stack, layer, folder / "rendered", {}))
        refused = deployment.play("--check", certificate=False)
        assert refused.returncode != 0, refused.stdout[-4000:]
        previewed = deployment.play("--check", "--diff")
        assert previewed.returncode == 0, previewed.stdout[-4000:] + previewed.stderr
        began = time.monotonic()
        with processes_seen() as processes:
            done = deployment.play("--diff")
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr
        took = time.monotonic() - began
        deployment.run("web1", "benchapp-manage loadfixtures --rows 100")
        outputs = {
            "refused": refused.stdout,
            "previewed": previewed.stdout + previewed.stderr,
            "first": done.stdout + done.stderr,
        }
        yield replace(deployment, **outputs, first_s=took, processes=frozenset(processes))
