"""A small disk for a directory: a file system in memory, to be filled on purpose."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SIZE_MB, FILES = 4, 500
BLOCK = bytes(4096)
# Names on the disk that fill it. No URL maps to a name with a leading dot.
BYTES, NAMES = ".full-bytes", ".full-names"


class CannotMount(Exception):
    """This machine or user cannot mount a file system, and why."""


@dataclass(frozen=True)
class SmallDisk:
    """The file system mounted over `folder`. Others write there too: filling takes the room left at that moment."""

    folder: Path

    def fill(self) -> None:
        """Leave no room for another byte."""
        with contextlib.suppress(OSError), (self.folder / BYTES).open("ab", buffering=0) as file:
            while file.write(BLOCK):
                pass

    def fill_names(self) -> None:
        """Leave no room for another file, however small."""
        names = self.folder / NAMES
        with contextlib.suppress(OSError):
            names.mkdir(exist_ok=True)
            for number in range(len(list(names.iterdir())), FILES):
                (names / str(number)).touch()

    def free(self) -> None:
        """Make room again."""
        (self.folder / BYTES).unlink(missing_ok=True)
        shutil.rmtree(self.folder / NAMES, ignore_errors=True)


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator[SmallDisk]:
    """A small disk over an existing directory until the block ends; raises CannotMount."""
    if os.geteuid() != 0:
        raise CannotMount("only root can mount a small disk to fill")
    options = f"size={SIZE_MB}m,nr_inodes={FILES},mode=755"
    argv = ["mount", "-t", "tmpfs", "-o", options, "benchapp", str(folder)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise CannotMount(f"a small disk to fill cannot be mounted: {done.stderr.strip()}")
        yield SmallDisk(folder)
    finally:
        unmount(folder)


def unmount(folder: Path) -> None:
    """Unmount everything on the directory or below, in use or not."""
    for line in Path("/proc/self/mounts").read_text("utf-8").splitlines():
        point = Path(line.split(" ")[1])
        if point == folder or folder in point.parents:
            subprocess.run(["umount", "--lazy", str(point)], check=False, stdin=subprocess.DEVNULL)
