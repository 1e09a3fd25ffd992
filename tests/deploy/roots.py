"""Roots of Debian's releases, made of Debian's packages by mmdebstrap, once a machine.

A root is a host that was just installed. The packages that install notes name are not on it; they lie in its cache of
packages, so that apt-get installs them without a network.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.serve.catalog import catalog
from tests.skips import needs

# What is made once stays here.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "benchapp-tests"
INSTALLED = ("systemd-sysv", "dbus", "udev", "iproute2", "ca-certificates", "openssl")
# What install notes name.
FOR_ALL = ("git", "curl", "logrotate", "procps", "python3-venv", "postgresql-client", "unattended-upgrades", "certbot")
SERVERS = ("nginx", "apache2", "apache2-dev", "gcc", "python3-dev", "haproxy", "varnish", "caddy", "memcached")
DATABASE = ("postgresql",)
APT = """APT::Install-Recommends "false";
APT::Get::Assume-Yes "true";
APT::Keep-Downloaded-Packages "true";
APT::Periodic::Enable "0";
"""


def debian(release: int) -> Path:
    """The root of a release; skips the test if it cannot be made, and says why."""
    if os.geteuid() != 0:
        pytest.skip("only root can boot a machine")
    needs("mmdebstrap")
    codename = catalog.read().releases[release].codename
    cached = [*FOR_ALL, *SERVERS, *DATABASE, "redis-server" if release == 12 else "valkey-server"]
    recipe = hashlib.sha256(repr((codename, INSTALLED, cached, APT)).encode()).hexdigest()[:12]
    CACHE.mkdir(parents=True, exist_ok=True)
    root = CACHE / f"debian-{release}-{recipe}"
    with (CACHE / f"debian-{release}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.is_dir():
            _make(codename, cached, root)
    return root


def _make(codename: str, cached: list[str], root: Path) -> None:
    """Make a root; nothing is left behind if that fails."""
    part, apt = root.with_suffix(".new"), root.with_suffix(".apt")
    shutil.rmtree(part, ignore_errors=True)
    apt.write_text(APT)
    download = f'chroot "$1" apt-get install --download-only --quiet=2 {" ".join(cached)}'
    done = subprocess.run(
        [
            *("mmdebstrap", "--quiet", "--variant=apt", f"--include={','.join(INSTALLED)}", f"--aptopt={apt}"),
            *("--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*"),
            *("--skip=cleanup/apt", f"--customize-hook={download}", "--customize-hook=rm -f $1/etc/hostname"),
            *(codename, str(part)),
        ],
        capture_output=True,
        text=True,
    )
    apt.unlink()
    if done.returncode:
        shutil.rmtree(part, ignore_errors=True)
        lines = done.stderr.strip().splitlines() or ["nothing said"]
        pytest.skip(f"no root of {codename} can be made: {lines[-1]}")
    part.rename(root)
