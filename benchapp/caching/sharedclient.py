"""A client of memcached that the threads of a process share, and that says what could not be written."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from pymemcache.client.hash import HashClient


class SharedClient(HashClient):
    """pymemcache's client for several threads: one at a time changes which servers are left alone for failing.

    Its own raises KeyError out of a page when two find at once that a server may be asked again. And where errors are
    to break no page it takes the keys of a failed `set_many` for written: a write would never be told again.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._changing = threading.RLock()
        super().__init__(*args, **kwargs)

    def remove_server(self, *args: Any, **kwargs: Any) -> None:
        with self._changing:
            super().remove_server(*args, **kwargs)

    def _retry_dead(self) -> None:
        with self._changing:
            # Its own may look away for as long again as a server is left alone.
            self._last_dead_check_time = 0.0
            super()._retry_dead()

    def _set_many(self, client: Any, values: Any, *args: Any, **kwargs: Any) -> tuple[list, list, Exception | None]:
        try:
            failed = client.set_many(values, *args, **kwargs)
        except Exception as error:  # whatever it is: the caller marks the server or passes over it
            return [], list(values), error
        return [key for key in values if key not in failed], failed, None

    def _mark_failed_server(self, server: Any) -> None:
        # Another thread may have reached it meanwhile, and so it has not failed.
        with self._changing, contextlib.suppress(KeyError):
            super()._mark_failed_server(server)
