"""The errors of a program, collected while the program runs."""

from __future__ import annotations

from typing import IO

# A program that fails in a loop writes without end.
MAX_LOG_BYTES = 1_000_000


def drain(stream: IO[bytes], errors: list[bytes]) -> None:
    """Collect the tool's errors up to the limit of their file, and read on, so that the tool never blocks."""
    room = MAX_LOG_BYTES
    with stream:
        while line := stream.readline(65536):
            if room:
                errors.append(line[:room])
                room = max(0, room - len(line))
