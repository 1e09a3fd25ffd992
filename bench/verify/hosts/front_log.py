"""Requests passed by the front to each web host, in its access log, read by ssh."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from bench.serve.production.inventory import Host
from bench.verify.hosts import ssh, upstreams

TIMEOUT_S = 20.0
# The file's identity and its size.
STATE = ssh.AS_ROOT + "$sudo stat -c '%i %s' {path} 2> /dev/null || echo 0 0"
NEW_LINES = ssh.AS_ROOT + "$sudo tail -c +{first} {path}"


class FrontLog:
    """New lines of the front's access log, after `begin`."""

    def __init__(self, front: Host, web: Sequence[Host], path: str) -> None:
        self._front, self._web, self._path = front, web, quote(path)
        self._began = (0, 0)

    def begin(self) -> None:
        """Count from here on. Raises BenchError if the host cannot be reached."""
        self._began = self._state()

    def requests(self) -> dict[str, int] | None:
        """Requests by web host; None if the log names no host, or was rotated meanwhile."""
        (file, first), (now_file, now) = self._began, self._state()
        if not file or now_file != file or now < first:
            return None
        script = NEW_LINES.format(first=first + 1, path=self._path)
        lines = ssh.run(self._front, script, TIMEOUT_S, "its access log").encode().splitlines()
        by_address = upstreams.by_address(lines) or {}
        counts = {host.name: by_address.get(host.address, 0) for host in self._web}
        # A log without a request for any web host does not show which one responded.
        if not any(counts.values()):
            return None
        return counts

    def _state(self) -> tuple[int, int]:
        file, size = ssh.run(self._front, STATE.format(path=self._path), TIMEOUT_S, "its access log").split()
        return int(file), int(size)
