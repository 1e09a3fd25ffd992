"""The commands of the tutorials, as a reader types them; rounds are fewer, and times shorter."""

from __future__ import annotations

import re
import shlex

from bench import paths
from bench.serve.machine.ports import free_port

TUTORIALS = paths.KIT / "docs" / "tutorials"
# Options of a command -> what is given in their place. The machine may be busy with other tests.
SHORTER = {"--rounds": "1", "--duration": "1", "--max-time": "2s"}
GUARDS = [word for name in ("interference", "drift", "tool") for word in ("--guard", f"{name}=off")]


def text(name: str) -> str:
    return (TUTORIALS / f"{name}.md").read_text("utf-8")


def commands(name: str, stacks: int = 2) -> list[list[str]]:
    """The words of each command of a tutorial, without `benchapp`, in less time and on a free port.

    stacks  the number of stacks of a run, at most
    """
    blocks = re.findall(r"^```console\n(.*?)^```", text(name), re.M | re.S)
    lines = re.findall(r"^\$ (.*)", "\n".join(blocks), re.M)
    assert all(line.startswith("benchapp ") for line in lines)
    return [_shortened(shlex.split(line)[1:], stacks) for line in lines]


def _shortened(words: list[str], stacks: int) -> list[str]:
    instead = {**SHORTER, "--port": str(free_port())}
    words = [instead.get(before, word) for before, word in zip(["", *words], words, strict=False)]
    if words[0] != "run":
        return words
    options = next(index for index, word in enumerate(words) if word.startswith("-"))
    return ["run", *words[1:options][:stacks], *words[options:], *GUARDS]
