"""The talk with one host that runs Locust: over one connection, which ends what runs there when it ends."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from bench.fleet.inventory import Host
from bench.fleet.ssh import Connection

# It reads its own text from standard input: a list of processes shows this alone.
BEGIN = Path(__file__).with_name("locust.sh")
REMOTE = Path(__file__).with_name("locust_remote.py")
ANSWER_S = 40.0


class Talk(Connection):
    """A host while the context lasts; raises BenchError, with its name, when it does not do what it shall."""

    def __init__(self, host: Host, port: int):
        """That port of this machine's loopback is one of the host's loopback, too."""
        python = host.python or (sys.executable if host.local else "")
        script = BEGIN.read_text("utf-8").replace("PYTHON", shlex.quote(python))
        there = f"127.0.0.1:{port}:127.0.0.1:{port}"
        super().__init__(host, script, ("-o", "ExitOnForwardFailure=yes", "-R", there))

    def greet(self) -> dict[str, Any]:
        """Learn the version of Locust there, and the cores."""
        self.send_program(REMOTE.read_bytes())
        self.send_json({"python": self.host.python})
        said: dict[str, Any] = self.answer("cannot be reached", ANSWER_S)
        if not said["version"]:
            how = f"{self.host.python or 'python'} -m pip install locust"
            raise BenchError(f"{self.host.name}: Locust is not installed; install it there: {how}")
        return said

    def do(self, job: dict[str, Any]) -> dict[str, Any]:
        """Have a job done: how its processes ended, and the files that they wrote."""
        self.send_json(job)
        done: dict[str, Any] = self.answer("the connection ended")
        return done
