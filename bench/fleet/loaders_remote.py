"""What runs on a load host. Its text is sent there and runs from memory: nothing of it is ever on a disk.

It answers lines of JSON on its standard input with lines of JSON: first, unasked, its Python and its cores; `"time"`
with its clock in nanoseconds; the modules of the load tool and a job with `"ready"`; when the load begins with the
counts. It ends with its standard input, together with all of its processes.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import resource
import select
import signal
import sys
import time
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

# A controller whose machine has gone closes nothing: seconds until the load begins, and beyond its last answer.
IDLE_S, GRACE_S = 300, 30


class Sent(MetaPathFinder, Loader):
    """Imports modules from their texts, by name."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """A module that was sent."""
        if fullname not in self._texts:
            return None
        is_package = any(name.startswith(f"{fullname}.") for name in self._texts)
        return importlib.util.spec_from_loader(fullname, self, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        """Run its text."""
        exec(compile(self._texts[module.__name__], module.__name__, "exec"), vars(module))


def main() -> None:
    """Answer until a load was made or nobody asks any more."""
    signal.alarm(IDLE_S)
    with contextlib.suppress(PermissionError):
        # What is ended with it are its own processes alone.
        os.setpgid(0, 0)
    say({"python": list(sys.version_info[:2]), "cores": len(os.sched_getaffinity(0))})
    job: dict[str, Any] = {}
    for line in iter(sys.stdin.buffer.readline, b""):
        asked = json.loads(line)
        if asked == "time":
            say(time.time_ns())
        elif "modules" in asked:
            sys.meta_path.insert(0, Sent(asked["modules"]))
            job = asked["job"]
            made_possible(job)
            say("ready")
        else:
            load({**job, **asked})
            return


def say(what: object) -> None:
    """Answer in a line."""
    sys.stdout.buffer.write(json.dumps(what).encode() + b"\n")
    sys.stdout.buffer.flush()


def made_possible(job: dict[str, Any]) -> None:
    """Import the load tool, and have as many open files as it has connections."""
    importlib.import_module("bench.load.openloop.processes")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = job["connections"] + 100
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def load(job: dict[str, Any]) -> None:
    """Make the load in a process of its own and print its counts; end all when standard input does."""
    signal.signal(signal.SIGALRM, end)
    signal.alarm(int(job["begins"] - time.time()) + job["seconds"] + job["timeout_s"] + GRACE_S)
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        make(job, write)
    os.close(write)
    counts = b""
    while True:
        if 0 in select.select([0, read], [], [])[0]:
            end()
        if not (piece := os.read(read, 1 << 20)):
            break
        counts += piece
    if os.waitpid(pid, 0)[1]:
        sys.exit(1)
    used = os.times()
    cpu_s = round(used.children_user + used.children_system, 3)
    sys.stdout.buffer.write(b'{"cpu_s": %.3f, "counts": %s}\n' % (cpu_s, counts))
    sys.stdout.buffer.flush()


def make(job: dict[str, Any], write: int) -> None:
    """Make the load, its counts into a pipe, and end this process."""
    status = 1
    try:
        tool = importlib.import_module("bench.load.openloop.processes")
        parsed = importlib.import_module("bench.load.openloop.job").EngineJob.of(job)
        counts = json.dumps(tool.make(parsed))
        with os.fdopen(write, "w") as pipe:
            pipe.write(counts)
        status = 0
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def end(*_: int | FrameType | None) -> None:
    """End this process and all that it started."""
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
