"""deploy/examples: ten stacks as rendered for production on Debian 12, each a whole host.

`make examples` writes them again; test_examples.py holds them equal to a render.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from bench import paths
from bench.serve.production import one_host
from tests.cases import production

FOLDER = paths.DEPLOY / "examples"
RELEASE = 12
README = """\
# {title}

All files of one Debian {release} host that serves `example.org` by `{stack}`. `INSTALL.md` is the way from here
to a site that serves, with each command. With your names and places, in a file of values as `docs/production.md` shows:

    benchapp render {stack} --values FILE.toml --output DIR

Read first: `{configuration}`, then `benchapp-deploy` for how a release comes and goes.
`benchapp-install` puts everything into its place; `site.env` is the site's environment, without its secrets.
Nothing here is written by hand: `make examples` renders it from `deploy/`.
"""


def stacks() -> list[str]:
    """The stacks of the table in deploy/README.md."""
    table = (paths.DEPLOY / "README.md").read_text("utf-8").partition("## The examples")[2]
    return re.findall(r"(?m)^\| \[?`([\w-]+)`", table)


def render(stack: str, folder: Path) -> None:
    """Write the example of a stack into `folder`, which is made."""
    case = production(stack, debian=RELEASE)
    written = {path.name for path in one_host.write(case, folder)}
    configurations = [server.config for server in reversed(case.servers) if server.config in written]
    configuration = "`, `".join([*configurations, "systemd/"])
    text = README.format(title=case.stack.title, stack=stack, release=RELEASE, configuration=configuration)
    (folder / "README.md").write_text(text, "utf-8")


def files(folder: Path) -> dict[str, tuple[str, bool]]:
    """The text of each file below a folder, and whether it can be executed, by its path."""
    by_path = {}
    for path in folder.rglob("*"):
        if path.is_file():
            executable = bool(path.stat().st_mode & 0o100)
            by_path[str(path.relative_to(folder))] = (path.read_text("utf-8"), executable)
    return by_path


def write() -> None:
    """Write all of them again."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for stack in stacks():
        render(stack, FOLDER / stack)


if __name__ == "__main__":
    write()
