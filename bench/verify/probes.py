"""Asking a caching layer: pages that nobody has asked for before, and whether an answer was kept.

A page of the probe views shows the id of its rendering in its text, since a layer that keeps the bytes of a page alone
loses its headers. Two answers of the same rendering are one that was kept.
"""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Iterator

from bench.verify import wire
from bench.verify.outcome import NotAsked
from bench.verify.suite import Context
from bench.verify.wire import Answer, BadAnswer

# With as many processes as this, each with a cache of its own, one of them is asked a second time at the latest now.
TRIES = 33
# A cookie that is nobody's session, for which every layer asks the application all the same.
PAST_THE_LAYER = {"Cookie": "sessionid=nobody"}
SWITCHED_OFF = "the site runs without its probe views: start it with BENCHAPP_PROBES=1"
_SHOWN = re.compile(rb'<p id="([a-z-]+)">([^<]*)</p>')


def fresh(view: str = "page") -> str:
    """The path of a probe page that nobody has asked for."""
    return f"/probe/{view}/{secrets.token_hex(8)}/"


def must_have_probes(context: Context) -> None:
    """Raise NotAsked when a site that somebody else has brought up has no probe views; BadAnswer for our own."""
    if context.first("/probe/inside").status != 200:
        raise NotAsked(SWITCHED_OFF) if context.running is None else BadAnswer("no probe views")


def shown(answer: Answer) -> dict[str, str]:
    """What a probe page says of its rendering and of the request it was rendered for."""
    return {name.decode(): html.unescape(text.decode()) for name, text in _SHOWN.findall(answer.content[:2000])}


def rendering(answer: Answer) -> str | None:
    """The id of the rendering: as the text has it, else as the header has it; None when neither does."""
    return shown(answer).get("render-id") or answer.render_id


def is_kept(answer: Answer, earlier: list[Answer]) -> bool:
    """Whether an answer is an earlier rendering. One of status 200 without an id was kept: each rendering has one."""
    found = rendering(answer)
    if found is None:
        return answer.status == 200
    return any(rendering(item) == found for item in earlier)


def kept(context: Context, path: str, headers: wire.Headers = (), tries: int = TRIES) -> Answer | None:
    """Ask for `path` until an answer was kept, and return that; None when every one was rendered anew."""
    answers: list[Answer] = []
    for _ in range(tries):
        answer = context.get(path, headers)
        if is_kept(answer, answers):
            return answer
        answers.append(answer)
    return None


def several(context: Context, path: str, times: int, headers: wire.Headers = (), **more: object) -> list[Answer]:
    """So many answers, one after another."""
    return [context.get(path, headers, **more) for _ in range(times)]


def repeated(answers: list[Answer]) -> Iterator[Answer]:
    """The answers that are a rendering which an earlier one of them was already."""
    for number, answer in enumerate(answers):
        if is_kept(answer, answers[:number]):
            yield answer
