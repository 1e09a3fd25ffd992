"""Work beside a fault, in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")


@contextmanager
def in_threads(work: Iterable[Callable[[threading.Event], Result]]) -> Iterator[list[Future[Result]]]:
    """Call these functions at one time, each in a thread; each gets an event, set at the end of the block.

    The event is also set after a signal, even one between two calls. All functions are awaited.
    """
    over, every = threading.Event(), list(work)
    with ThreadPoolExecutor(len(every)) as pool:
        try:
            yield [pool.submit(each, over) for each in every]
        finally:
            over.set()
