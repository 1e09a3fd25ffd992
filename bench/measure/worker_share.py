"""How requests spread over worker processes, seen from outside.

The site's probe /probe/inside tells which process answers. It is asked on as many connections as the trial has, kept
open or not as the trial's, before the load begins: a server that hands a kept connection to one worker for good does so
here as it does there.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import Counter
from urllib.parse import SplitResult, urlsplit

PATH = "/probe/inside"
# Requests on each connection, and how long all of them may take.
EACH = 8
BUDGET_S = 1.0
MOST_CONNECTIONS = 512


def spread(url: str, connections: int, keep_alive: bool = True, budget_s: float = BUDGET_S) -> dict[str, int] | None:
    """How many requests each worker process answered, the busiest first; None where the site does not tell.

    A worker that answered none is not in it.
    """
    answers: Counter[str] = Counter()
    asyncio.run(_ask_all(urlsplit(url), min(connections, MOST_CONNECTIONS), keep_alive, budget_s, answers))
    return dict(answers.most_common()) or None


async def _ask_all(
    target: SplitResult, connections: int, keep_alive: bool, budget_s: float, answers: Counter[str]
) -> None:
    visitors = [asyncio.create_task(_visit(target, keep_alive, answers)) for _ in range(connections)]
    _, late = await asyncio.wait(visitors, timeout=budget_s)
    for visitor in late:
        visitor.cancel()
    await asyncio.gather(*visitors, return_exceptions=True)
    # Connections told to close do so in the loop's next turn.
    await asyncio.sleep(0)


async def _visit(target: SplitResult, keep_alive: bool, answers: Counter[str]) -> None:
    """Ask again and again on one connection, a new one where the server or the trial closes it."""
    left = EACH
    while left:
        reader, writer = await _connect(target)
        try:
            while left:
                left -= 1
                open_still, process = await _ask(reader, writer, target, keep_alive)
                if process is None:
                    return
                answers[process] += 1
                if not open_still:
                    break
        finally:
            writer.close()


async def _connect(target: SplitResult) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    # The certificate is the deployment's own, signed by nobody.
    context = ssl._create_unverified_context() if target.scheme == "https" else None
    return await asyncio.open_connection(target.hostname, target.port, ssl=context)


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: SplitResult, keep_alive: bool
) -> tuple[bool, str | None]:
    """Whether the connection stays open, and the process that answered, None when the answer does not say."""
    connection = "keep-alive" if keep_alive else "close"
    writer.write(f"GET {PATH} HTTP/1.1\r\nHost: {target.netloc}\r\nConnection: {connection}\r\n\r\n".encode())
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "content-length" in headers:
        body, delimited = await reader.readexactly(int(headers["content-length"])), True
    elif "chunked" in headers.get("transfer-encoding", ""):
        body, delimited = await _chunks(reader), True
    else:
        body, delimited = await reader.read(), False
    stays = keep_alive and delimited and headers.get("connection", "").lower() != "close"
    try:
        return stays, str(json.loads(body)["process_id"]) if status.split()[1] == "200" else None
    except (ValueError, KeyError, TypeError):
        return False, None


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
    return body
