"""README.md and docs/stacks.md are true: commands exist, tables are the folders', links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
from itertools import product
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from bench import paths
from bench.cli import main, options
from bench.serve.catalog import catalog, compatibility, manifest
from bench.verify.suite import all_checks
from reproductions.published import publications

TEXT = (paths.KIT / "README.md").read_text("utf-8")
QUESTIONS = (paths.KIT / "docs" / "questions.md").read_text("utf-8")
STACKS = (paths.KIT / "docs" / "stacks.md").read_text("utf-8")
SAFETY = (paths.KIT / "docs" / "cache-safety.md").read_text("utf-8")
REPRODUCTIONS = (paths.KIT / "docs" / "reproductions.md").read_text("utf-8")
DEMO = (paths.KIT / "docs" / "demo-site.md").read_text("utf-8")
BLOCKS = "\n".join(re.findall(r"^```\n(.*?)^```", TEXT + DEMO, re.M | re.S))
# Those that are written when the site is built are not of the clone.
BUILT = {"_build", "reference"}
PAGES = [path.relative_to(paths.KIT) for path in (paths.KIT / "docs").rglob("*.md")]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *(str(path) for path in PAGES if BUILT.isdisjoint(path.parts))]
EXAMPLES = {"mine", "NAME", "SERVER", "nginx-waitress-one"}
LINES = [line.partition("#")[0].strip() for line in BLOCKS.splitlines()]


def rows(header: str, text: str = TEXT) -> list[list[str]]:
    """The cells of the first table of a text under a header line."""
    lines = text[text.index(header) :].splitlines()
    table = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table


def test_two_commands_are_for_a_clone():
    blocks = re.findall(r"^```\n(.*?)^```", TEXT, re.M | re.S)
    commands = [[line.partition("#")[0].strip() for line in block.splitlines()] for block in blocks]
    assert ["make bench", "make test"] in commands


def test_it_counts_stacks_and_layers_as_they_are():
    known = catalog.read()
    words = {10: "ten", 11: "eleven", 12: "twelve"}
    assert f"behind {len(known.usual_stacks)} server stacks" in TEXT
    assert f"under {words[len(known.layers) - 1]} caching layers" in TEXT


def test_the_number_of_checks_is_the_present_one():
    counts = re.findall(r"passes \d+ of (\d+) checks", TEXT + QUESTIONS)
    assert counts == [str(len(all_checks()))] * 2


def test_a_fresh_project_has_as_many_findings_as_the_kept_output():
    output = (paths.KIT / "docs" / "reports" / "what-will-hurt-my-own-project.txt").read_text("utf-8")
    assert output.splitlines()[-1] in QUESTIONS


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("make ")])
def test_a_make_command_is_a_target(line):
    done = subprocess.run([*shlex.split(line), "-n"], cwd=paths.KIT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_commands_of_a_document_are_understood(document):
    text = (paths.KIT / document).read_text("utf-8")
    names = "|".join(main.COMMANDS)
    for line in re.findall(rf"^ *(?:\$ )?(?:python -m bench|benchapp) ((?:{names})(?: .*)?)$", text, re.M):
        must_be_understood(shlex.split(line, comments=True))


def must_be_understood(words: list[str]) -> None:
    """Fail unless these words of a command name what there is, and not everything by leaving a name out."""
    args = main.parser().parse_args(words)
    for stack in getattr(args, "stack", ()):
        assert stack in {*EXAMPLES, "STACK"} or catalog.read().stack(stack)
    layers = getattr(args, "layer", "none")
    for layer in (layers,) if isinstance(layers, str) else layers:
        assert layer in EXAMPLES or catalog.read().joined_layers(layer)
    if words[0] in ("run", "verify") and not {"--resume", "--target", "--inventory", "--list-checks"} & set(words):
        assert options.unnamed(args, "--layer") == ""


@pytest.mark.parametrize("line", [line for line in LINES if "manage.py" in line])
def test_a_manage_command_is_understood(line):
    words = [word for word in shlex.split(line) if not re.fullmatch(r"[A-Z_]+=.*", word)]
    assert words[0] == "./manage.py"
    command = load_command_class(get_commands()[words[1]], words[1])
    command.create_parser("manage.py", words[1]).parse_args(words[2:])


def test_what_was_found_is_on_the_page_of_questions():
    titles = re.findall(r"^## (.+)$", QUESTIONS, re.M)
    assert len(titles) == 15
    # What cannot be measured on one machine has no command.
    assert len(re.findall(r"^benchapp .+$", QUESTIONS, re.M)) >= len(titles) - 1
    section = TEXT[TEXT.index("## What we found") : TEXT.index("## Which deployment")]
    bullets = re.findall(r"(?ms)^- \*\*\[.+?\]\(docs/questions\.md#.+?\)\*\*.+?(?=^- |\Z)", section)
    assert len(bullets) == 6
    assert [bullet for bullet in bullets if len(bullet.split()) > 35] == []


def servers_of(stack: manifest.Stack) -> str:
    return " ← ".join(server.name for server in stack.servers)


HEADER = "| stack | servers, innermost first | for whom |"
DEPLOY = (paths.DEPLOY / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "folder", "count"), [(TEXT, "deploy/examples", 5), (DEPLOY, "examples", 10)], ids=["README", "deploy"]
)
def test_deployments_are_what_their_manifests_say(text, folder, count):
    known = catalog.read()
    table = rows(HEADER, text)
    names = [cells[0].partition("]")[0].strip("[`") for cells in table]
    assert all(cells[0].endswith(f"({folder}/{name})") for name, cells in zip(names, table, strict=True))
    assert len(set(names)) == len(table) == count
    assert set(names) <= set(known.usual_stacks)
    for name, (_, servers, people) in zip(names, table, strict=True):
        assert servers == servers_of(known.stack(name))
        assert people


@pytest.mark.parametrize(("heading", "historic"), [("## Stacks", False), ("## Historic stacks", True)])
def test_the_tables_of_stacks_are_the_folders(heading, historic):
    behind: dict[str, list[str]] = {}
    for stack in catalog.read().stacks.values():
        if (stack.era == "historic") == historic:
            front = stack.servers[-1].name if len(stack.servers) > 1 else "none"
            behind.setdefault(front, []).append(f"`{stack.name}`")
    table = rows("| in front | stacks |", STACKS[STACKS.index(f"\n{heading}\n") :])
    assert {front: stacks.split(", ") for front, stacks in table} == behind


def test_the_table_of_layers_says_which_stacks_each_fits():
    known = catalog.read()
    table = rows("| layer |", STACKS)
    assert [cells[0].strip("`") for cells in table] == list(known.layers)
    for name, needs, _ in table:
        named = set(needs.split(" or "))
        for stack in known.stacks.values():
            fits = needs == "any" or not named.isdisjoint(server.name for server in stack.servers)
            assert fits == (not compatibility.layer_problem(stack, known.layers[name.strip("`")])), (
                f"{name} on {stack.name}"
            )


def test_what_django_s_own_caches_cannot_promise_is_listed_as_they_declare_it():
    declared = set()
    for name in ("fragments", "site-middleware", "view-cache"):
        for item in catalog.read().layers[name].declares:
            declared.add((f"`{item.check}`", f"`{name}`", item.reason))
    listed = set()
    for checks, layers, reason in rows("| checks | layers | what happens |", SAFETY):
        listed |= set(product(checks.split(", "), layers.split(", "), [reason]))
    assert declared == listed


def test_the_table_of_slow_clients_is_what_stacks_declare():
    declared: dict[str, list[str]] = {"slow-headers": [], "slow-bodies": [], "slow-readers": []}
    for stack in catalog.read().stacks.values():
        for part in (stack, *stack.servers):
            for item in part.breaks:
                if item.fault in declared:
                    declared[item.fault].append(f"`{stack.name}`")
    table = rows("| fault | stacks |", STACKS)
    assert table == [[f"`{fault}`", ", ".join(stacks)] for fault, stacks in declared.items()]


def test_every_published_benchmark_has_its_row():
    published = publications()
    table = rows("| command | published as |", REPRODUCTIONS)
    assert [cells[0] for cells in table] == [f"`python -m reproductions {name}`" for name in published]
    for cells, about in zip(table, published.values(), strict=True):
        assert cells[1].startswith(about.title)
        assert f"{about.year})" in cells[1]
        assert cells[0].strip("`").endswith(tuple(published))


def test_every_published_conclusion_has_its_row_and_its_verdict():
    for about in publications().values():
        table = rows(
            "| conclusion | verdict |", REPRODUCTIONS[REPRODUCTIONS.index(f"## {about.title} ({about.year})") :]
        )
        assert [cells[0].partition(" *(")[0] for cells in table] == [claim.claim for claim in about.claims]
        assert {cells[1] for cells in table} <= {"holds", "does not hold", "inconclusive", "not measured"}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_of_the_kit_that_it_names_exist(document):
    text = (paths.KIT / document).read_text("utf-8")
    named = set(re.findall(r"(?<![\w./-])((?:bench|benchapp|config|deploy|docs|fixtures|tests)/[\w./-]*\w)", text))
    # What a reader makes.
    named = {name for name in named if EXAMPLES.isdisjoint(name.split("/"))}
    assert [name for name in sorted(named) if not (paths.KIT / name).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document):
    source = paths.KIT / document
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", source.read_text("utf-8")):
        place = source.parent / target if target else source
        # Those pages are made with the site, which test_docs.py builds and looks through.
        if place.is_relative_to(paths.KIT / "docs" / "reference"):
            continue
        assert place.exists(), f"{document} links to {target}"
        assert not anchor or anchor in anchors(place), f"{document} links to {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings get."""
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def test_the_options_it_names_exist():
    known = {option for action in _actions(main.parser()) for option in action.option_strings}
    manage = load_command_class(get_commands()["loadfixtures"], "loadfixtures").create_parser(
        "manage.py", "loadfixtures"
    )
    known |= {option for action in manage._actions for option in action.option_strings}
    known.add("--dest")  # of argcomplete's own command
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", TEXT)) <= known


def _actions(parser):
    for action in parser._actions:
        yield action
        for child in (getattr(action, "choices", None) or {}).values() if hasattr(action, "_name_parser_map") else ():
            yield from _actions(child.complete())
