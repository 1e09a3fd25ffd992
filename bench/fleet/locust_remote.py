"""What runs Locust on a host. Its text is sent there and runs from memory; it needs Python 3.8.

It answers lines of JSON on its standard input with lines of JSON: which Python to ask, with the version of Locust and
the cores; a job, when all of its processes have ended, with how they ended and the files that they wrote. It ends with
its standard input, together with its processes and its files.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

VERSION = "import importlib.metadata as found; print(found.version('locust'))"
ANSWER_S = 20
# Seconds until a job comes: a controller whose machine has gone closes nothing.
IDLE_S = 300
END_S = 5.0
POLL_S = 0.05


def main() -> None:
    """Answer until a job is done or nobody asks any more."""
    signal.alarm(IDLE_S)
    python, version = installed(json.loads(sys.stdin.buffer.readline())["python"])
    say({"version": version, "cores": len(os.sched_getaffinity(0))})
    line = sys.stdin.buffer.readline()
    if not line:
        return
    # A job has a limit of its own.
    signal.alarm(0)
    gone = threading.Event()
    threading.Thread(target=watch, args=(gone,), daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: gone.set())
    signal.signal(signal.SIGHUP, lambda *_: gone.set())
    folder = Path(tempfile.mkdtemp(prefix="benchapp-locust-"))
    try:
        answer = done(python, json.loads(line), folder, gone)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say(answer)


def watch(gone: threading.Event) -> None:
    """Set the event when standard input ends. A buffered read would keep the interpreter from its own end."""
    while os.read(0, 4096):
        pass
    gone.set()


def installed(asked: str) -> tuple[str, str]:
    """A Python that has Locust, and the version of that; two empty strings without one."""
    program = shutil.which("locust")
    # The first line of an installed program names its Python.
    of_program = Path(program).read_text("utf-8", "replace").splitlines()[0][2:].strip() if program else ""
    for python in [asked] if asked else filter(None, (sys.executable, of_program)):
        try:
            found = subprocess.run(
                [python, "-c", VERSION], stdout=-1, stderr=-3, stdin=-3, timeout=ANSWER_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if found.returncode == 0:
            return python, found.stdout.decode().strip()
    return "", ""


def done(python: str, job: dict[str, Any], folder: Path, gone: threading.Event) -> dict[str, Any]:
    """Run the processes of a job until all have ended, its time is up, or nobody waits for them."""
    for name, text in job["files"].items():
        (folder / name).write_text(text, "utf-8")
    own = {name: value for name, value in os.environ.items() if not name.startswith("LOCUST_")} | job["environment"]
    argv = [python, "-m", "locust", *job["arguments"]]
    running = [
        subprocess.Popen(argv, cwd=folder, env=own, stdin=subprocess.DEVNULL, stdout=2) for _ in range(job["processes"])
    ]
    try:
        until = time.monotonic() + job["limit_s"]
        while not gone.is_set() and time.monotonic() < until and any(one.poll() is None for one in running):
            gone.wait(POLL_S)
    finally:
        end(running)
    wrote = [path for path in folder.iterdir() if path.is_file() and path.name not in job["files"]]
    files = {path.name: path.read_text("utf-8", "replace") for path in wrote}
    return {"ended": [one.returncode for one in running], "files": files}


def end(running: list[subprocess.Popen[bytes]]) -> None:
    """End what still runs."""
    for one in running:
        if one.poll() is None:
            one.terminate()
    until = time.monotonic() + END_S
    for one in running:
        try:
            one.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            one.kill()
            one.wait()


def say(what: object) -> None:
    """Answer in a line."""
    try:
        sys.stdout.buffer.write(json.dumps(what).encode() + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Nobody waits for it: the interpreter's last flush must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    main()
