"""The talk with one host that runs Locust: over one connection, which ends what runs there when it ends."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from bench.fleet.inventory import Host

# It reads its own text from standard input: a list of processes shows this alone.
BEGIN = Path(__file__).with_name("locust.sh")
REMOTE = Path(__file__).with_name("locust_remote.py")
ANSWER_S = 40.0
# Longer than what runs there takes to end its own processes.
END_S = 8.0


class Talk:
    """A host while the context lasts; raises BenchError, with its name, when it does not do what it shall.

    port  of this machine's loopback that the host has at its own loopback
    """

    def __init__(self, host: Host, port: int):
        self.host = host
        self._port = port
        self._said: list[bytes] = []

    @property
    def log(self) -> str:
        """What Locust, or ssh, has said there."""
        return b"".join(self._said).decode("utf-8", "replace")

    def __enter__(self) -> Talk:
        python = self.host.python or (sys.executable if self.host.local else "")
        argv = self.host.argv(BEGIN.read_text("utf-8").replace("PYTHON", shlex.quote(python)))
        if not self.host.local:
            tunnel = f"127.0.0.1:{self._port}:127.0.0.1:{self._port}"
            argv[1:1] = ["-o", "ExitOnForwardFailure=yes", "-R", tunnel]
        self._talk = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self._drain = threading.Thread(target=self._listen, daemon=True)
        self._drain.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        assert self._talk.stdout
        self._talk.stdout.close()

    def end(self) -> None:
        """End what runs there, and wait for that."""
        assert self._talk.stdin
        with contextlib.suppress(OSError, ValueError):
            self._talk.stdin.close()
        try:
            self._talk.wait(END_S)
        except subprocess.TimeoutExpired:
            self._talk.kill()
            self._talk.wait()
        self._drain.join(END_S)

    def greet(self) -> dict[str, Any]:
        """Learn the version of Locust there, and the cores."""
        text = REMOTE.read_bytes()
        self._send(b"%d\n%s" % (len(text), text))
        self._send(json.dumps({"python": self.host.python}).encode() + b"\n")
        late = threading.Timer(ANSWER_S, self._talk.kill)
        late.start()
        try:
            said = self._answer("cannot be reached")
        finally:
            late.cancel()
        if not said["version"]:
            how = f"{self.host.python or 'python'} -m pip install locust"
            raise BenchError(f"{self.host.name}: Locust is not installed; install it there: {how}")
        return said

    def do(self, job: dict[str, Any]) -> dict[str, Any]:
        """Have a job done: how its processes ended, and the files that they wrote."""
        self._send(json.dumps(job).encode() + b"\n")
        return self._answer("the connection ended")

    def _send(self, data: bytes) -> None:
        assert self._talk.stdin
        # Why it has ended is found when its answer is read.
        with contextlib.suppress(OSError, ValueError):
            self._talk.stdin.write(data)
            self._talk.stdin.flush()

    def _answer(self, failure: str) -> dict[str, Any]:
        """The next line from there. Raises BenchError with the words of the failure and what was said of it."""
        assert self._talk.stdout
        line = self._talk.stdout.readline()
        if line.endswith(b"\n"):
            found: dict[str, Any] = json.loads(line)
            return found
        self._drain.join(END_S)
        lines = [line.strip() for line in self.log.splitlines() if line.strip()]
        why = lines[-1].removeprefix("ssh: ")[:200] if lines else f"no answer within {ANSWER_S:.0f} s"
        raise BenchError(f"{self.host.name}: {failure}: {why}")

    def _listen(self) -> None:
        assert self._talk.stderr
        with self._talk.stderr as stream:
            while piece := os.read(stream.fileno(), 65_536):
                self._said.append(piece)
