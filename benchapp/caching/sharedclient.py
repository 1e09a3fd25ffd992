"""A client of memcached that the threads of a process share."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from pymemcache.client.hash import HashClient


class SharedClient(HashClient):
    """pymemcache's client for several threads: one at a time changes which servers are left alone for failing.

    Its own raises KeyError out of a page when two find at once that a server may be asked again.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._changing = threading.RLock()
        super().__init__(*args, **kwargs)

    def remove_server(self, *args: Any, **kwargs: Any) -> None:
        with self._changing:
            super().remove_server(*args, **kwargs)

    def _retry_dead(self) -> None:
        with self._changing:
            super()._retry_dead()

    def _mark_failed_server(self, server: Any) -> None:
        # Another thread may have reached it meanwhile, and so it has not failed.
        with self._changing, contextlib.suppress(KeyError):
            super()._mark_failed_server(server)
