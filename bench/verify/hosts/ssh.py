"""Commands on a host, over one connection until its end: by ssh, or by a shell if the host is this machine."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator, Sequence
from typing import Self

from bench.errors import BenchError
from bench.serve.machine.error_output import drain
from bench.serve.machine.ports import free_port
from bench.serve.production.inventory import Host

NOT_INSTALLED = "program not installed: ssh; apt-get install openssh-client"
# Beginning of scripts that use $sudo: root if possible.
AS_ROOT = '[ "$(id -u)" = 0 ] || ! sudo -n true 2> /dev/null || sudo="sudo -n"\n'
# Output before this line comes from the shell's own files, such as .bashrc.
BEGINS = "benchapp begins"
# Time for the remote program to end after the connection; longer than ending its own processes takes.
END_S = 8.0
MAX_CHARACTERS = 200
TUNNEL_S = 20.0


def run(host: Host, script: str, limit_s: float, what: str) -> str:
    """Run a script on a host; returns its output.

    Raises BenchError without ssh, for an unreachable host, and if `what` fails.
    """
    argv = host.argv(_marked(script))
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=limit_s
        )
    except FileNotFoundError:
        raise BenchError(NOT_INSTALLED) from None
    except subprocess.TimeoutExpired:
        raise BenchError(f"{host.name}: {what}: no end after {limit_s:.0f} s") from None
    _, begun, output = done.stdout.partition(f"{BEGINS}\n")
    if not begun:
        raise BenchError(f"{host.name}: cannot be reached: {last_line(done.stderr, 'no reason given')}")
    if done.returncode != 0:
        why = last_line(done.stderr or output, "it wrote nothing")
        raise BenchError(f"{host.name}: {what}: exit status {done.returncode}: {why}")
    return output


def last_line(output: str, otherwise: str) -> str:
    """The last line of output of ssh, or of a program on a host; `otherwise` if empty."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if lines:
        return lines[-1].removeprefix("ssh: ")[:MAX_CHARACTERS]
    return otherwise


def _marked(script: str) -> str:
    return f"echo {BEGINS}\n{script}"


class SshConnection:
    """A script that runs on a host while the context lasts, and speaks in lines; raises BenchError without ssh.

    options  more arguments for ssh
    """

    def __init__(self, host: Host, script: str, options: Sequence[str] = ()):
        self.host = host
        program, *words = host.argv(_marked(script))
        self._argv = [program, *options, *words]
        self._errors: list[bytes] = []
        self._has_begun = self._is_late = False

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(self._argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        except FileNotFoundError:
            raise BenchError(NOT_INSTALLED) from None
        self._listener = threading.Thread(target=drain, args=(self._process.stderr, self._errors), daemon=True)
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the remote program, and wait for its end."""
        assert self._process.stdin and self._process.stdout
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join(END_S)
        self._process.stdout.close()

    def send(self, data: bytes) -> None:
        """Send data. The cause of a lost host is found when reading its response."""
        assert self._process.stdin
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def line(self, limit_s: float) -> bytes:
        """The next whole line from the host; empty after the limit, and the connection ends."""
        late = threading.Timer(limit_s, self._give_up)
        late.start()
        try:
            while not self._has_begun and (line := self._line()):
                self._has_begun = line.endswith(f"{BEGINS}\n".encode())
            if not self._has_begun:
                return b""
            return self._line()
        finally:
            late.cancel()

    def why(self, limit_s: float) -> str:
        """The reason for a missing line, by the last words of the other side or of ssh. Ends the connection."""
        self.kill()
        self._listener.join(END_S)
        if self._is_late:
            return f"no response within {limit_s:.0f} s"
        return last_line(b"".join(self._errors).decode("utf-8", "replace"), "the connection ended")

    def kill(self) -> None:
        """End the connection at once."""
        self._process.kill()

    def _line(self) -> bytes:
        """The next line; empty if cut short."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            return b""
        return line

    def _give_up(self) -> None:
        self._is_late = True
        self.kill()


@contextlib.contextmanager
def tunnel(host: Host, address: str, port: int) -> Iterator[tuple[str, int]]:
    """Forward an address of the host to this machine while the block lasts, whatever firewall protects it.

    Raises BenchError on failure.
    """
    if host.local:
        yield address, port
        return
    here = free_port()
    options = ("-o", "ExitOnForwardFailure=yes", "-L", f"127.0.0.1:{here}:{address}:{port}")
    # `cat` responds once the tunnel is up, and ends with this process.
    with SshConnection(host, "exec cat", options) as connection:
        connection.send(b"\n")
        if not connection.line(TUNNEL_S):
            raise BenchError(f"{host.name}: no tunnel by ssh: {connection.why(TUNNEL_S)}")
        try:
            yield "127.0.0.1", here
        finally:
            # ssh would wait for the end of the tunnel's connections.
            connection.kill()
