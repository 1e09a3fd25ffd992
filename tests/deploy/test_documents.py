"""What docs/adding-a-stack.md promises is what templates get."""

from __future__ import annotations

import re

from bench import paths
from bench.catalog import catalog, compose, manifest
from bench.serve import export, render

TEXT = (paths.PROJECT / "docs" / "adding-a-stack.md").read_text("utf-8")


def test_the_names_of_the_document_are_the_names_of_the_templates():
    chosen = catalog.read().values["production"]
    composition = compose.compose_for_files("nginx-uwsgi", "none", chosen)
    places = export.production_places(chosen)
    wiring = render.wire(composition.stack.servers, places, chosen.names, None)
    context = render.context_of(composition.stack.servers[1], composition, places, wiring, chosen)
    table = TEXT[TEXT.index("| name | what it is |") :]
    documented = set(re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines() if "|" in line)))
    assert documented == context.keys() - chosen.names.keys()


def test_the_keys_of_the_document_are_the_keys_of_a_server():
    table = TEXT[TEXT.index("| key | meaning |") : TEXT.index("A stack that cannot use")]
    documented = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (.+?) \|", table, re.M)))
    assert set(documented) == set(manifest.Server.__dataclass_fields__)


def test_the_example_is_the_stack_it_shows():
    example = TEXT[TEXT.index("```toml") : TEXT.index("A server that is not in")]
    assert 'name = "uwsgi"' in example
    assert catalog.read().stacks["nginx-uwsgi"].title in example


def test_the_glossary_has_the_words_of_the_command_line():
    glossary = (paths.PROJECT / "docs" / "glossary.md").read_text("utf-8")
    for word in ("stack", "layer", "service", "size", "workload", "level", "case", "trial", "run", "report"):
        assert re.search(rf"^\| [\w, ]*\b{word}\b", glossary, re.M), word
