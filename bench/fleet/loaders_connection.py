"""The talk with one load host: over one connection, which ends what runs there when it ends."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from bench import paths
from bench.fleet import reach
from bench.fleet.inventory import Host
from bench.fleet.reach import ROUND_TRIPS, TIMEOUT_S, Clock
from bench.measure.load_process import Live, TrialError, drain

BEGIN = Path(__file__).with_name("loader.sh")
REMOTE = Path(__file__).with_name("loaders_remote.py")
ENGINE = paths.PROJECT / "bench" / "load" / "openloop"
# They need more than Python.
NOT_SENT = ("__main__", "encode")
MIN_PYTHON = [3, 10]
# For what is left there to end when the connection does.
END_S = 5.0


class Loader:
    """A load host while the context lasts; raises TrialError, with its name, when it does not do what it shall.

    clock  how far its clock is ahead, once it was greeted
    cores  how many processes it can run at the same time, once it was greeted
    """

    def __init__(self, host: Host, live: Live | None = None):
        self.host = host
        self.clock = Clock(0.0, 0.0)
        self.cores = 1
        self.errors: list[bytes] = []
        self._live = live
        self._is_late = False

    def __enter__(self) -> Loader:
        self._talk = subprocess.Popen(
            self.host.argv(BEGIN.read_text("utf-8")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._drain = threading.Thread(target=drain, args=(self._talk.stderr, self.errors, self._live), daemon=True)
        self._drain.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._talk.stdin and self._talk.stdout
        with contextlib.suppress(OSError):
            self._talk.stdin.close()
        try:
            self._talk.wait(END_S)
        except subprocess.TimeoutExpired:
            self._talk.kill()
            self._talk.wait()
        self._drain.join(END_S)
        self._talk.stdout.close()

    def greet(self) -> None:
        """Send what runs there, and learn its clock and its cores."""
        text = REMOTE.read_bytes()
        self._send(b"%d\n%s" % (len(text), text))
        said = self._answer("cannot be reached", TIMEOUT_S)
        if said["python"] < MIN_PYTHON:
            version, wanted = (".".join(map(str, numbers)) for numbers in (said["python"], MIN_PYTHON))
            raise TrialError(f"{self.host.name}: its Python is {version}; load needs Python {wanted} or a later one")
        self.cores = said["cores"]
        trips = []
        for _ in range(ROUND_TRIPS):
            sent = time.time_ns()
            self._say("time")
            there = self._answer("does not say the time", TIMEOUT_S)
            trips.append((sent, there, time.time_ns()))
        self.clock = reach.offset(trips)

    def prepare(self, job: dict[str, Any]) -> None:
        """Send the load tool and its job, and wait until it could begin."""
        self._say({"modules": modules(), "job": job})
        self._answer("cannot make load", TIMEOUT_S)

    def begin(self, at: float) -> None:
        """Have the load begin at that time by this machine's clock, in seconds."""
        self._say({"begins": at + self.clock.ahead_ms / 1000})

    def counts(self, limit_s: float) -> dict[str, Any]:
        """What it has counted and the processor seconds it used, when it is done."""
        found: dict[str, Any] = self._answer("the load ended early", limit_s)
        return found

    def _say(self, what: object) -> None:
        self._send(json.dumps(what).encode() + b"\n")

    def _send(self, data: bytes) -> None:
        assert self._talk.stdin
        # Why it has ended is found when its answer is read.
        with contextlib.suppress(OSError):
            self._talk.stdin.write(data)
            self._talk.stdin.flush()

    def _answer(self, failure: str, limit_s: float) -> Any:
        """The next line from there. Raises TrialError with the words of the failure and what was said of it."""
        assert self._talk.stdout
        late = threading.Timer(limit_s, self._give_up)
        late.start()
        try:
            with contextlib.suppress(ValueError):
                return json.loads(self._talk.stdout.readline())
        finally:
            late.cancel()
        raise TrialError(f"{self.host.name}: {failure}: {self._why(limit_s)}")

    def kill(self) -> None:
        """End the connection at once."""
        self._talk.kill()

    def _give_up(self) -> None:
        self._is_late = True
        self.kill()

    def _why(self, limit_s: float) -> str:
        """The last words of the other side, or of ssh."""
        self.kill()
        self._drain.join(END_S)
        lines = [line.strip() for line in b"".join(self.errors).decode("utf-8", "replace").splitlines() if line.strip()]
        if self._is_late or not lines:
            return f"no answer within {limit_s:.0f} s" if self._is_late else "the connection ended"
        return lines[-1].removeprefix("ssh: ")[:200]


def modules() -> dict[str, str]:
    """The modules of the load tool by name, and the packages that they are in."""
    found = {"bench": "", "bench.load": ""}
    for path in sorted(ENGINE.glob("*.py")):
        if path.stem not in NOT_SENT:
            name = "" if path.stem == "__init__" else f".{path.stem}"
            found[f"bench.load.openloop{name}"] = path.read_text("utf-8")
    return found
