"""Tell cache hits from renderings, with probe pages that nobody has requested before.

A probe page shows its render id in its text too, because a layer that stores only a page's bytes loses its headers.
Two answers with the same render id are one rendering, so the second one came from a cache.
"""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Iterable

from bench.verify import wire
from bench.verify.cacheability import obstacle
from bench.verify.context import Context
from bench.verify.finding import NEEDS_PROBES, NotTried
from bench.verify.site import INSIDE
from bench.verify.wire import Answer, BadAnswer

# With up to 32 processes that each have a cache of their own, the 33rd request must be a hit (pigeonhole principle).
MAX_TRIES = 33
_PARAGRAPH = re.compile(rb'<p id="([a-z-]+)">([^<]*)</p>')
# The paragraphs of a probe page stand in its first bytes.
_HEAD_BYTES = 2000


def new_path(view: str = "page") -> str:
    """The path of a probe page that nobody has requested."""
    return f"/__probe__/{view}/{secrets.token_hex(8)}/"


def require_probes(context: Context) -> None:
    """Raise NotTried when the --target has no probe views, BadAnswer when a deployment of ours has none."""
    if context.first(INSIDE).status != 200:
        raise NotTried(NEEDS_PROBES) if context.running is None else BadAnswer("no probe views")


def require_cacheable(context: Context) -> None:
    """Raise NotTried, by the name of what stops it, where a project's middleware keeps each page out of caches."""
    require_probes(context)
    if not context.strict and (why := obstacle(context.get(new_path()))):
        raise NotTried(f"no page of the project is cached: {why}")


def paragraphs(answer: Answer) -> dict[str, str]:
    """The paragraphs of a probe page, about its rendering and its request, by name."""
    return {
        name.decode(): html.unescape(text.decode()) for name, text in _PARAGRAPH.findall(answer.content[:_HEAD_BYTES])
    }


def paragraph(answer: Answer, name: str) -> str:
    """The text of a probe page's paragraph; raises ValueError when the page has none of that name."""
    found = re.search(rf'<p id="{name}">([^<]*)</p>', answer.text)
    if not found:
        raise ValueError(f"a probe page without its paragraph {name}")
    return html.unescape(found[1])


def render_id(answer: Answer) -> str | None:
    """The id of the rendering, from the text or else from the header; None when neither has it."""
    return paragraphs(answer).get("render-id") or answer.render_id


def is_hit(answer: Answer, earlier: Iterable[Answer]) -> bool:
    """Whether an answer repeats an earlier rendering. A 200 without an id is a hit: each rendering has one."""
    found = render_id(answer)
    if found is None:
        return answer.status == 200
    return any(render_id(item) == found for item in earlier)


def until_hit(context: Context, path: str, headers: wire.Headers = (), tries: int = MAX_TRIES) -> Answer | None:
    """Request `path` until an answer is a hit, and return that; None when every answer was rendered."""
    answers: list[Answer] = []
    for _ in range(tries):
        answer = context.get(path, headers)
        if is_hit(answer, answers):
            return answer
        answers.append(answer)
    return None


def repeat(
    context: Context,
    path: str,
    times: int,
    headers: wire.Headers = (),
    *,
    method: str = "GET",
    body: bytes | None = None,
) -> list[Answer]:
    """The answers to the same request sent `times` times, one after another."""
    return [context.get(path, headers, method=method, body=body) for _ in range(times)]
