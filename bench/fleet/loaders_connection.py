"""The talk with one load host: over one connection, which ends what runs there when it ends."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import IO, Any

from bench import paths
from bench.errors import BenchError
from bench.fleet import reach
from bench.fleet.reach import TIMEOUT_S, Clock
from bench.fleet.ssh import Connection
from bench.measure.load_process import Live, TrialError, drain
from bench.production.inventory import Host

BEGIN = Path(__file__).with_name("loader.sh")
REMOTE = Path(__file__).with_name("loaders_remote.py")
ENGINE = paths.PROJECT / "bench" / "load" / "openloop"
# They need more than Python.
NOT_SENT = ("__main__", "encode")
MIN_PYTHON = [3, 10]


class Loader(Connection):
    """A load host while the context lasts; raises TrialError, with its name, when it does not do what it shall.

    clock  how far its clock is ahead, once it was greeted
    cores  how many processes it can run at the same time, once it was greeted
    """

    def __init__(self, host: Host, live: Live | None = None):
        super().__init__(host, BEGIN.read_text("utf-8"), listen=partial(_listen, live))
        self.clock = Clock(0.0, 0.0)
        self.cores = 1

    def greet(self) -> None:
        """Send what runs there, and learn its clock and its cores."""
        self.send_program(REMOTE.read_bytes())
        said = self._answer("cannot be reached", TIMEOUT_S)
        if said["python"] < MIN_PYTHON:
            version, wanted = (".".join(map(str, numbers)) for numbers in (said["python"], MIN_PYTHON))
            raise TrialError(f"{self.host.name}: its Python is {version}; load needs Python {wanted} or a later one")
        self.cores = said["cores"]
        self.clock = reach.clock_of(self._time)

    def prepare(self, job: dict[str, Any]) -> None:
        """Send the load tool and its job, and wait until it could begin."""
        self.send_json({"modules": modules(), "job": job})
        self._answer("cannot make load", TIMEOUT_S)

    def begin(self, at: float) -> None:
        """Have the load begin at that time by this machine's clock, in seconds."""
        self.send_json({"begins": at + self.clock.ahead_ms / 1000})

    def counts(self, limit_s: float) -> dict[str, Any]:
        """What it has counted and the processor seconds it used, when it is done."""
        found: dict[str, Any] = self._answer("the load ended early", limit_s)
        return found

    def _time(self) -> int:
        self.send_json("time")
        there: int = self._answer("does not say the time", TIMEOUT_S)
        return there

    def _answer(self, failure: str, limit_s: float) -> Any:
        try:
            return self.answer(failure, limit_s)
        except BenchError as error:
            raise TrialError(str(error)) from None


def _listen(live: Live | None, stream: IO[bytes], said: list[bytes]) -> None:
    drain(stream, said, live)


def modules() -> dict[str, str]:
    """The modules of the load tool by name, and the packages that they are in."""
    found = {"bench": "", "bench.load": ""}
    for path in sorted(ENGINE.glob("*.py")):
        if path.stem not in NOT_SENT:
            name = "" if path.stem == "__init__" else f".{path.stem}"
            found[f"bench.load.openloop{name}"] = path.read_text("utf-8")
    return found
