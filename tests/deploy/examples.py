"""deploy/examples: the README's ten stacks as rendered for production on Debian 12, servers' files and units alone.

`make examples` writes them anew; test_examples.py holds them equal to a render.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from bench import paths
from bench.serve.production import one_host
from tests.cases import production

FOLDER = paths.DEPLOY / "examples"
RELEASE = 12


def stacks() -> list[str]:
    """The stacks of the README's table."""
    table = (paths.KIT / "README.md").read_text("utf-8").partition("## Which deployment")[2].partition("\n## ")[0]
    return re.findall(r"(?m)^\| \[?`([\w-]+)`", table)


def rendered(stack: str) -> dict[str, str]:
    """The text of each file of the example, by its path below the stack's folder."""
    case = production(stack, debian=RELEASE)
    read = {name for server in case.servers for name in server.file_names}
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        names = {path: str(path.relative_to(folder)) for path in one_host.write(case, folder)}
        return {
            name: path.read_text("utf-8") for path, name in names.items() if name in read or name.startswith("systemd/")
        }


def write() -> None:
    """Write all of them anew."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for stack in stacks():
        for name, text in rendered(stack).items():
            path = FOLDER / stack / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")


if __name__ == "__main__":
    write()
