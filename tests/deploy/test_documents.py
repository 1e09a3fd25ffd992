"""Templates get the names that docs/adding-a-stack.md promises."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench import paths
from bench.serve.catalog import catalog, manifest
from bench.serve.deployment import render
from bench.serve.deployment.placed import Placed
from bench.serve.machine.identity import worker
from bench.serve.production import one_host
from bench.serve.project import commands
from tests.cases import for_files, kit
from tests.deploy.running import get

TEXT = (paths.KIT / "docs" / "adding-a-stack.md").read_text("utf-8")


# The files that the document shows, each named in its first line, and the commands that it gives.
FILES = re.findall(r"^```\w+\n(# (deploy/\S+)\n.*?)^```$", TEXT, re.M | re.S)
COMMANDS = [["-m", "bench", *shlex.split(line, comments=True)] for line in re.findall(r"^benchapp (.+)$", TEXT, re.M)]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the checkout with the files that the document shows."""
    copy = tmp_path_factory.mktemp("checkout") / "benchapp"
    shutil.copytree(paths.KIT, copy, ignore=_not_of_the_checkout)
    for text, name in FILES:
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text(text)
    # To compress them takes seconds.
    commands.collect_static(kit(), kit().worker())
    shutil.copytree(kit().static_root, copy / "var" / "static")
    worker(copy).give_tree(copy)
    return copy


def _not_of_the_checkout(folder: str, names: list[str]) -> set[str]:
    # What is compiled goes along: the servers do not write it, and each process would compile the site again.
    top = {"var", "results"} if Path(folder) == paths.KIT else set()
    return {name for name in names if name in top or name.startswith(".")}


def test_the_document_shows_a_stack_and_a_variant_with_a_separate_file():
    assert [name for _, name in FILES] == [
        "deploy/stacks/mine/stack.toml",
        "deploy/stacks/nginx-waitress-one/stack.toml",
        "deploy/stacks/nginx-waitress-one/nginx.conf.j2",
    ]
    assert [(words[2], words[3]) for words in COMMANDS] == [
        ("check", "mine"),
        ("up", "mine"),
        ("verify", "mine"),
        ("check", "nginx-waitress-one"),
    ]


@pytest.mark.servers
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_commands_of_the_document_do_what_it_says(words, checkout, site_url):
    if not shutil.which("nginx"):
        pytest.skip("program not installed: nginx")
    # Verified with few checks: of its servers all are made elsewhere.
    words = [*words, *(["--check", "content", "--check", "static-content"] if "verify" in words else [])]
    words += ["--set", "processes=1"] if "check" not in words else []
    env = {**os.environ, "DATABASE_URL": site_url}
    how = {"cwd": checkout, "env": env, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, *words], **how) as process:
        if "up" in words:
            line = process.stdout.readline()
            try:
                assert get(line.removeprefix("ready ").strip()).status_code == 200
            finally:
                process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=900)
    assert process.returncode == 0, out + err
    assert "FAIL" not in out


def test_the_names_of_the_document_are_the_names_of_the_templates():
    chosen = catalog.read().values["production"]
    case = for_files("nginx-uwsgi", values=chosen)
    placed = Placed(case, one_host.production_places(chosen)).wired(iter([8001]).__next__)
    context = render.context_of(case.stack.servers[1], placed)
    table = TEXT[TEXT.index("| name | what it is |") :]
    documented = set(re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines() if "|" in line)))
    assert documented == context.keys() - chosen.names.keys()


@pytest.mark.parametrize("kind", [manifest.Stack, manifest.Server, manifest.Layer, manifest.Service, manifest.Reload])
def test_every_key_of_a_manifest_is_described_beside_its_type(kind):
    described = set(re.findall(r"(?:^    |; )(\w+)(?=:| )", kind.__doc__, re.M))
    assert set(kind.__struct_fields__) <= described


GLOSSARY = re.findall(r"^- \*\*(.+?)\*\*: ", (paths.KIT / "docs" / "glossary.md").read_text("utf-8"), re.M)


def test_the_glossary_has_the_words_of_the_command_line():
    defined = {word for words in GLOSSARY for word in words.split(", ")}
    words = ["stack", "layer", "service", "size", "workload", "level", "case", "trial", "run", "report", "open loop"]
    words += ["cache hit", "cache miss", "bypass", "stale", "invalidate", "TTL", "reverse proxy", "request coalescing"]
    words += ["leads", "tie", "inconclusive", "verdict", "discarded", "skipped", "known limitation", "drift"]
    words += ["gap", "recovery", "operator", "ref", "round", "overlay", "plain"]
    assert [word for word in (*words, "render lock", "circuit breaker") if word not in defined] == []


def test_the_glossary_is_in_alphabetical_order_with_one_definition_a_word():
    assert sorted(set(GLOSSARY), key=str.lower) == GLOSSARY
