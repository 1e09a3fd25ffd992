"""How requests spread over worker processes, seen from outside.

The site's probe /__probe__/inside names the process that answers. Before the load begins it is requested on as many
connections as the trial has, at the same time, with keep-alive or without as in the trial: a server that ties a
keep-alive connection to one worker shows it here too.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from bench.machine import http as client

PATH = "/__probe__/inside"
# Requests on each connection, and how long all of them may take.
EACH = 8
BUDGET_S = 1.0
MAX_CONNECTIONS = 512


def requests_per_worker(
    url: str, connections: int, keep_alive: bool = True, budget_s: float = BUDGET_S
) -> dict[str, int] | None:
    """How many requests each worker process answered, the busiest first; None where the site has no such probe.

    A worker without an answer is not in the list.
    """
    count = min(connections, MAX_CONNECTIONS)
    deadline = time.monotonic() + budget_s
    together = threading.Barrier(count)
    answers: Counter[str] = Counter()
    with ThreadPoolExecutor(count) as pool:
        for asked in [pool.submit(_ask, url, keep_alive, together, deadline) for _ in range(count)]:
            answers.update(asked.result())
    return dict(answers.most_common()) or None


def _ask(url: str, keep_alive: bool, together: threading.Barrier, deadline: float) -> Counter[str]:
    """Process -> its answers to the requests of one connection."""
    answers: Counter[str] = Counter()
    connection = client.connect(url)
    headers = {} if keep_alive else {"Connection": "close"}
    try:
        together.wait(_left_s(deadline))
        for _ in range(EACH):
            connection.timeout = _left_s(deadline)
            if connection.sock:
                connection.sock.settimeout(connection.timeout)
            connection.request("GET", PATH, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            if not keep_alive:
                connection.close()
            if answer.status != 200:
                break
            answers[str(json.loads(body)["process_id"])] += 1
    except (threading.BrokenBarrierError, OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        # Out of time, a site without the probe, or one that is gone: the answers until then count.
        pass
    finally:
        connection.close()
    return answers


def _left_s(deadline: float) -> float:
    """Seconds until the deadline. Raises TimeoutError when it has passed."""
    if (left := deadline - time.monotonic()) <= 0:
        raise TimeoutError
    return left
