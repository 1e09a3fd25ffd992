"""The program on a load host, sent as text and run from memory: nothing is stored on a disk.

The program responds to lines of JSON on its standard input with lines of JSON: first, without a request, its Python and
its cores; `"time"` with its clock in nanoseconds; the modules of the load tool and a job with `"ready"`; the start of
the load with the counts. The program ends with its standard input, together with all of its processes.
"""

from __future__ import annotations

import contextlib
import fcntl
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

# A controller whose machine has gone closes nothing: seconds until the load begins, and beyond its last response.
IDLE_S, GRACE_S = 300, 30


class SourceImporter(MetaPathFinder, Loader):
    """Imports modules from their texts, by name."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """A received module."""
        if fullname not in self._texts:
            return None
        is_package = any(name.startswith(f"{fullname}.") for name in self._texts)
        return importlib.util.spec_from_loader(fullname, self, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's text."""
        exec(compile(self._texts[module.__name__], module.__name__, "exec"), vars(module))


def main() -> None:
    """Respond until a load was made or standard input ends."""
    signal.alarm(IDLE_S)
    with contextlib.suppress(PermissionError):
        # The group to be killed has only the program's own processes.
        os.setpgid(0, 0)
    say({"python": list(sys.version_info[:2]), "cores": len(os.sched_getaffinity(0))})
    job: dict[str, Any] = {}
    for line in iter(sys.stdin.buffer.readline, b""):
        asked = json.loads(line)
        if asked == "time":
            say(time.time_ns())
        elif "modules" in asked:
            sys.meta_path.insert(0, SourceImporter(asked["modules"]))
            job = asked["job"]
            importlib.import_module("bench.measure.load.openloop.processes")
            # Each connection is an open file.
            most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
            say("ready")
        else:
            say(run_load(job | asked))
            return


def say(what: object) -> None:
    """Write the object as one line."""
    sys.stdout.buffer.write(json.dumps(what).encode() + b"\n")
    sys.stdout.buffer.flush()


def run_load(job: dict[str, Any]) -> dict[str, Any]:
    """The counts of the load, and its processor seconds."""
    end_with_input()
    signal.signal(signal.SIGALRM, end)
    signal.alarm(int(job["begins"] - time.time()) + job["seconds"] + job["timeout_s"] + GRACE_S)
    before = cpu_seconds()
    tool = importlib.import_module("bench.measure.load.openloop.processes")
    parsed = importlib.import_module("bench.measure.load.openloop.job").Job(**job)
    try:
        counts = tool.make(parsed)
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
    return {"cpu_s": round(cpu_seconds() - before, 3), "counts": counts}


def end_with_input() -> None:
    """Make the kernel end all of these processes with standard input, whatever they are doing."""
    # Nothing more is sent, so only the end of input makes it readable. SIGIO ends a process without a handler.
    fcntl.fcntl(0, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([0], [], [], 0)[0]:
        end()


def cpu_seconds() -> float:
    """Of this process, and of its ended children."""
    return sum(os.times()[:4])


def end(*_: int | FrameType | None) -> None:
    """End this process and all of its children."""
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
