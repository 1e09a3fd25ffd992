"""The user of the servers: the caller, or an ordinary user if the caller is root.

Started as root, every server is already an ordinary user when it starts, so none needs a directive. A Python under a
home directory closed to others breaks such servers without naming the cause, so this module looks for one before
anything starts.
"""

from __future__ import annotations

import functools
import os
import pwd
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from bench import paths
from bench.errors import BenchError

# A server whose instrument is killed must not outlive it (setpriv(1)).
GUARD = ("--pdeathsig", "TERM")
# Makes a closed directory show only what servers need of it, in a separate mount namespace.
NAMESPACE = ("unshare", "--mount", "--propagation", "slave", "--")
ENCLOSE = ("/bin/sh", str(Path(__file__).with_name("enclose.sh")))
# Says which Python it is, and which of the folders cannot be listed, or the last one reached.
PROBE = """import os, ssl, sys
*listed, reached = sys.argv[1:]
closed = [path for path in listed if not os.access(path, os.R_OK | os.X_OK)]
closed += [] if os.path.exists(reached) else [reached]
print(repr((sys.version, sys.base_prefix)), *closed, sep="\\n")
"""


@dataclass(frozen=True)
class Identity:
    """A user, and the `prefix` of a command that runs as that user.

    notice  one line for people about a workaround on this machine, or empty
    """

    user: str
    uid: int
    gid: int
    prefix: tuple[str, ...]
    notice: str = ""

    def ending_by(self, stop_signal: str) -> Identity:
        """The same, for a program that gets this signal instead of TERM when the instrument is killed."""
        if GUARD[0] not in self.prefix:
            return self
        at = self.prefix.index(GUARD[0]) + 1
        return replace(self, prefix=(*self.prefix[:at], stop_signal, *self.prefix[at + 1 :]))

    def give(self, path: Path) -> None:
        """Make this user the owner of `path` (nothing to do unless the caller is root)."""
        if os.geteuid() == 0 and path.exists():
            os.chown(path, self.uid, self.gid)

    def give_tree(self, folder: Path) -> None:
        """Make this user the owner of `folder` and all files inside."""
        if os.geteuid() != 0 or not folder.exists():
            return
        for path in [folder, *folder.rglob("*")]:
            if not path.is_symlink():
                self.give(path)

    def must_write(self, path: Path) -> None:
        """Raise BenchError when this user cannot write to `path`."""
        if self.uid in (0, os.geteuid()):
            may_write = os.access(path, os.W_OK)
        else:
            # access(2) tells about the caller, not another user.
            may_write = _allows(path, self.uid, self.gid, stat.S_IWOTH)
        if not may_write:
            raise BenchError(
                f"{path}: not writable by user {self.user}, which the servers run as; "
                f"chown it to {self.user} or set BENCH_USER"
            )


@functools.cache
def worker(folder: Path = paths.KIT, reads: tuple[Path, ...] = ()) -> Identity:
    """The identity of servers, services and the site's commands, able to reach `folder`.

    `reads` are folders to read besides the kit: a project of the user's own, and its packages.

    The caller when not root. Else the user named by BENCH_USER, or the caller of sudo, or `nobody`. Raises BenchError
    if BENCH_USER is no user of this machine.
    """
    setpriv = shutil.which("setpriv")
    prefix: tuple[str, ...] = ()
    if setpriv:
        prefix = (setpriv, *GUARD, "--")
    if os.geteuid() != 0:
        me = pwd.getpwuid(os.geteuid())
        return Identity(me.pw_name, me.pw_uid, me.pw_gid, prefix)
    account = _ordinary_user()
    if account.pw_uid == 0:
        return Identity("root", 0, 0, prefix, "servers run as root, as BENCH_USER says")
    if not setpriv:
        raise BenchError("setpriv not found: it lets root start servers as an ordinary user; install util-linux")
    # The way in to the project reaches most folders, too; to find one costs two starts of Python.
    if folder != paths.KIT and _output(*(usual := worker(reads=reads)).prefix, "/bin/ls", "-d", str(folder)):
        return usual
    # Environments and databases are there: it is looked at, and may have to be shown.
    paths.STATE.mkdir(parents=True, exist_ok=True)
    drop = (setpriv, *GUARD, "--reuid", str(account.pw_uid), "--regid", str(account.pw_gid), "--clear-groups")
    closed = _closed_to((*drop, "--"), folder, reads)
    if closed is None:
        return Identity(account.pw_name, account.pw_uid, account.pw_gid, (*drop, "--"))
    enclosed = (*_enclosing(account, folder, reads), *drop, "--")
    still = _closed_to(enclosed, folder, reads)
    if still is None:
        notice = f"servers run as {account.pw_name}, who cannot read {closed}; only this path is bind-mounted for them"
        return Identity(account.pw_name, account.pw_uid, account.pw_gid, enclosed, notice)
    remedy = f"let others read it (chmod -R go+rX {still})"
    if still == Path(sys.base_prefix):
        remedy = "make the virtual environment from a Python that others can read"
    raise BenchError(
        f"user {account.pw_name} cannot read {still}, and no mount namespace can show it here; {remedy}, or set "
        "BENCH_USER=root"
    )


def _enclosing(account: pwd.struct_passwd, folder: Path, reads: tuple[Path, ...]) -> tuple[str, ...]:
    """The beginning of a command that sees Python, the project and `folder` in directories closed to the account."""
    needed: dict[Path, list[Path]] = {}
    for path in (Path(sys.base_prefix), paths.VENV, paths.PACKAGE, paths.KIT, paths.STATE, *reads, folder.absolute()):
        for parent in reversed(path.parents):
            if not _allows(parent, account.pw_uid, account.pw_gid, stat.S_IXOTH):
                needed.setdefault(parent, []).append(path)
                break
    words: tuple[str, ...] = NAMESPACE
    for closed, visible in needed.items():
        words = (*words, *ENCLOSE, str(closed), *map(str, visible), "--")
    return words


def _allows(path: Path, uid: int, gid: int, bit: int) -> bool:
    """True if the mode of an existing path gives a user this right, one of S_IROTH, S_IWOTH and S_IXOTH."""
    status = path.stat()
    if status.st_uid == uid:
        return bool(status.st_mode >> 6 & bit)
    if status.st_gid == gid:
        return bool(status.st_mode >> 3 & bit)
    return bool(status.st_mode & bit)


def _ordinary_user() -> pwd.struct_passwd:
    name = os.environ.get("BENCH_USER") or os.environ.get("SUDO_USER") or "nobody"
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise BenchError(f"BENCH_USER={name}: no such user on this machine; name an existing one") from None


def _closed_to(prefix: tuple[str, ...], folder: Path, reads: tuple[Path, ...]) -> Path | None:
    """The first thing a worker started with `prefix` cannot read: Python, the project; or reach: `folder`; else None.

    A Python with a closed library may start on another Python's library, so its response is compared.
    """
    python = Path(sys.base_prefix)
    listed = {paths.PACKAGE: paths.KIT, paths.STATE: paths.STATE, **{path: path for path in reads}}
    output = _output(*prefix, str(paths.PYTHON), "-S", "-c", PROBE, *map(str, (*listed, folder)))
    response, *closed = output.splitlines() or [""]
    if response != repr((sys.version, sys.base_prefix)):
        return python
    if not closed:
        return None
    return listed.get(Path(closed[0]), folder)


def _output(*argv: str) -> str:
    """Return the output of a program; empty if the program fails or cannot start."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, cwd="/", timeout=20, stdin=subprocess.DEVNULL)
    except OSError:
        return ""
    if done.returncode:
        return ""
    return done.stdout
