"""What runs on a host, over one connection that ends it: by ssh, or by a shell where the host is this machine."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import IO, Any, Self

from bench.errors import BenchError
from bench.production.inventory import Host

NOT_INSTALLED = "program not installed: ssh; apt-get install openssh-client"
# Begins scripts that use $sudo: as root where that is possible.
AS_ROOT = '[ "$(id -u)" = 0 ] || ! sudo -n true 2> /dev/null || sudo="sudo -n"\n'
# What a shell prints before this line is of its own files, such as .bashrc.
BEGINS = "benchapp begins"
# For what runs there to end when the connection does; longer than it takes to end its own processes.
END_S = 8.0
MAX_CHARACTERS = 200

# Takes what is said on standard error until its end, and adds to the list what is worth it.
Listen = Callable[[IO[bytes], list[bytes]], None]


def gather(stream: IO[bytes], said: list[bytes]) -> None:
    """Add all that is said."""
    with stream:
        while piece := os.read(stream.fileno(), 65_536):
            said.append(piece)


def run(host: Host, script: str, limit_s: float) -> subprocess.CompletedProcess[str]:
    """A script on a host, from its begin to its end; raises BenchError without ssh, and TimeoutExpired."""
    try:
        done = subprocess.run(
            host.argv(_marked(script)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except FileNotFoundError:
        raise BenchError(NOT_INSTALLED) from None
    done.stdout = done.stdout.partition(f"{BEGINS}\n")[2]
    return done


def last_line(said: str, otherwise: str) -> str:
    """The last line of what ssh, or a program on a host, said; `otherwise` when it said nothing."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1].removeprefix("ssh: ")[:MAX_CHARACTERS] if lines else otherwise


def _marked(script: str) -> str:
    return f"echo {BEGINS}\n{script}"


class Connection:
    """A script that runs on a host while the context lasts, and speaks in lines; raises BenchError without ssh.

    options  more words for ssh
    listen   takes what is said on standard error
    """

    def __init__(self, host: Host, script: str, options: Sequence[str] = (), listen: Listen = gather):
        self.host = host
        program, *words = host.argv(_marked(script))
        self._argv = [program, *(() if host.local else options), *words]
        self._listen = listen
        self._said: list[bytes] = []
        self._has_begun = self._is_late = False

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(self._argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        except FileNotFoundError:
            raise BenchError(NOT_INSTALLED) from None
        self._listener = threading.Thread(target=self._listen, args=(self._process.stderr, self._said), daemon=True)
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        assert self._process.stdout
        self._process.stdout.close()

    @property
    def log(self) -> str:
        """What was said on standard error."""
        return b"".join(self._said).decode("utf-8", "replace")

    def send(self, data: bytes) -> None:
        """Send it. Why a host is gone is found when its answer is read."""
        assert self._process.stdin
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def send_json(self, what: object) -> None:
        """Send it in a line."""
        self.send(json.dumps(what).encode() + b"\n")

    def send_program(self, text: bytes) -> None:
        """Send what the script there reads and runs, after its size."""
        self.send(b"%d\n%s" % (len(text), text))

    def answer(self, failure: str, limit_s: float) -> Any:
        """The next line from there, of JSON. Raises BenchError with the host, the failure and what was said of it."""
        if line := self.line(limit_s):
            with contextlib.suppress(ValueError):
                return json.loads(line)
        raise BenchError(f"{self.host.name}: {failure}: {self.why(limit_s)}")

    def line(self, limit_s: float) -> bytes:
        """The next whole line from there; empty when none came within the limit, which ends the connection."""
        late = threading.Timer(limit_s, self._give_up)
        late.start()
        try:
            while not self._has_begun and (line := self._line()):
                self._has_begun = line.endswith(f"{BEGINS}\n".encode())
            return self._line() if self._has_begun else b""
        finally:
            late.cancel()

    def why(self, limit_s: float) -> str:
        """Why no line came within that limit, by the last words of the other side or of ssh. Ends the connection."""
        self.kill()
        self._listener.join(END_S)
        if self._is_late:
            return f"no answer within {limit_s:.0f} s"
        return last_line(self.log, "the connection ended")

    def kill(self) -> None:
        """End the connection at once."""
        self._process.kill()

    def end(self) -> None:
        """End what runs there, and wait for that."""
        assert self._process.stdin
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join(END_S)

    def _line(self) -> bytes:
        """The next line; empty for one that was cut short."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        return line if line.endswith(b"\n") else b""

    def _give_up(self) -> None:
        self._is_late = True
        self.kill()
