"""The commands of the tutorials, as a reader types them; rounds and processes are fewer, and times shorter."""

from __future__ import annotations

import re
import shlex

from bench import paths
from bench.serve.machine.ports import free_port

TUTORIALS = paths.KIT / "docs" / "tutorials"
# Options of a command -> what is given in their place. The machine may be busy with other tests.
SHORTER = {"--rounds": "1", "--duration": "1", "--max-time": "2s"}
# Half the processes: each takes half a second of a core to start.
FEW = ["--set", "processes=2"]
GUARDS = [word for name in ("interference", "drift", "tool") for word in ("--guard", f"{name}=off")]


def text(name: str) -> str:
    return (TUTORIALS / f"{name}.md").read_text("utf-8")


def commands(name: str) -> list[list[str]]:
    """The words of each command of a tutorial, without `benchapp`, in less time and on a free port."""
    blocks = re.findall(r"^```console\n(.*?)^```", text(name), re.M | re.S)
    lines = re.findall(r"^\$ (.*)", "\n".join(blocks), re.M)
    assert all(line.startswith("benchapp ") for line in lines)
    return [_shortened(shlex.split(line)[1:]) for line in lines]


def _shortened(words: list[str]) -> list[str]:
    instead = {**SHORTER, "--port": str(free_port())}
    words = [instead.get(before, word) for before, word in zip(["", *words], words, strict=False)]
    added = {"up": FEW, "verify": FEW, "run": [*FEW, *GUARDS]}
    return [*words, *added.get(words[0], [])]
