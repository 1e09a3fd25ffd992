"""The commands of the tutorials, one after the other, as a reader runs them; rounds are fewer, and times shorter."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench import paths
from bench.serve.machine.ports import free_port

pytestmark = [pytest.mark.servers, pytest.mark.long]
TUTORIALS = paths.KIT / "docs" / "tutorials"
# Options of a command -> what is given in their place. The machine may be busy with other tests.
SHORTER = {"--rounds": "1", "--duration": "1", "--max-time": "2s"}
GUARDS = [word for name in ("interference", "drift", "tool") for word in ("--guard", f"{name}=off")]


def commands(name: str) -> list[list[str]]:
    """The words of each command of a tutorial, without `benchapp`."""
    text = (TUTORIALS / f"{name}.md").read_text("utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.M | re.S)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    assert all(line.startswith("benchapp ") for line in lines)
    return [shlex.split(line)[1:] for line in lines]


def shortened(words: list[str]) -> list[str]:
    """A command that takes less time."""
    words = [SHORTER.get(before, word) for before, word in zip(["", *words], words, strict=False)]
    return [*words, *GUARDS] if words[0] == "run" else words


def follow(name: str, folder, **env: str) -> list[str]:
    """Run the commands in a folder; returns their names. A site is served until it is ready, then Ctrl-C is pressed."""
    done = []
    inherited = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    for words in commands(name):
        words = shortened(words)
        port = str(free_port())
        words = [port if before == "--port" else word for before, word in zip(["", *words], words, strict=False)]
        process = subprocess.Popen(
            [sys.executable, "-m", "bench", *words],
            cwd=folder,
            env={**inherited, "PYTHONPATH": str(paths.KIT), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if words[0] == "up":
            said = []
            for line in process.stdout:
                said.append(line)
                if line == f"ready http://127.0.0.1:{port}/\n":
                    process.send_signal(signal.SIGINT)
                    break
            assert said[-1].startswith("ready "), "".join(said)
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, f"{shlex.join(words)}: {output}"
        done.append(words[0])
    return done


def test_the_first_comparison(tmp_path):
    assert follow("first-comparison", tmp_path) == ["list", "up", "run", "report", "run"]
    assert (tmp_path / "results" / "first" / "report.html").is_file()


def test_choosing_a_stack_for_a_project_and_putting_it_on_a_server(tmp_path):
    folder = start_project(tmp_path)
    done = follow("choose-a-stack", folder)
    assert done == ["doctor", "up", "verify", "run", "report", "render"]
    assert list(folder.glob("*/INSTALL.md"))
    # The next tutorial begins in the folder that this one leaves.
    text = (TUTORIALS / "put-it-on-a-server.md").read_text("utf-8")
    (values,) = re.findall(r"^```toml\n(.*?)^```", text, re.M | re.S)
    (folder / "mysite.toml").write_text(values)
    assert follow("put-it-on-a-server", folder) == ["render"]
    note = (folder / "production" / "INSTALL.md").read_text("utf-8")
    # The commands on the host, and the paths and names that they need, are those of the note.
    for command in (
        "benchapp-install",
        "benchapp-deploy REPOSITORY",
        "benchapp-manage createsuperuser",
        "benchapp-rollback",
        "/.health",
        "BENCHAPP_DATABASE_URL",
    ):
        assert command in text and command in note


def start_project(below: Path) -> Path:
    """The folder of a project of Django's template, as a reader has one, whose list of packages a host installs."""
    folder = below / "site"
    folder.mkdir()
    env = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    admin = str(paths.VENV / "bin" / "django-admin")
    subprocess.run([admin, "startproject", "mysite", "."], cwd=folder, env=env, check=True)
    settings = folder / "mysite" / "settings.py"
    settings.write_text(settings.read_text() + 'STATIC_ROOT = BASE_DIR / "static"\n')
    (folder / "requirements.txt").write_text("django\n")
    return folder
