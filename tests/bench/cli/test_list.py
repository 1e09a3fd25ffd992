"""`benchapp list`: names and combinations."""

from __future__ import annotations

import json
import re

from bench.cli.list import as_screen, as_text
from bench.serve.catalog import catalog
from bench.serve.deployment.survey import survey
from tests.cases import kit


def test_of_another_project_no_layer_says_that_a_write_makes_pages_fresh():
    listing = survey(kit())
    text = as_text(listing, 80, other=True)
    assert max(map(len, text.splitlines())) <= 80
    words = " ".join(text.split())
    assert "a write of this project shows after cache_seconds: no layer knows which pages it makes stale" in words
    assert "holds for a site that names the stale pages" in words
    assert not any("purge" in layer["about"] for layer in listing["layers"].values())


def test_list_says_what_fits_and_why_not_and_as_text_fits_a_narrow_terminal(bench, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    listing = json.loads(bench("list", "--json").stdout)
    assert listing["stacks"].keys() == catalog.read().stacks.keys()
    assert listing["layers"].keys() == catalog.read().layers.keys()
    assert listing["fits"]["gunicorn"]["none"] is None
    assert "staticgenerator needs apache or" in listing["fits"]["gunicorn"]["staticgenerator"]
    assert listing["stacks"]["cherokee-flup"]["era"] == "historic"
    lines = bench("list", "--all").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "CAN RUN HERE (yes, or the number of the reason)"
    # The name of each layer begins above its column.
    starts = {layer: next(line for line in lines if line.endswith(layer)).index(layer) for layer in listing["layers"]}
    for stack, fits in listing["fits"].items():
        row = next(line for line in lines if line.startswith(f" {stack} "))
        for layer, reason in fits.items():
            cell = row[starts[layer] :].split()[0]
            assert cell == "yes" if reason is None else cell.isdecimal(), (stack, layer)
        assert row.endswith(" historic") == (listing["stacks"][stack]["era"] == "historic")
    words = " ".join(" ".join(lines).split())
    reasons = [reason for stack in listing["stacks"].values() for reason in stack["declares"].values()]
    assert all(reason in words for reason in reasons), "wrapped, not cut"


def test_list_is_a_screen_that_has_every_stack_and_says_what_is_missing():
    listing = survey(kit())
    here = [stack for stack, fits in listing["fits"].items() if fits["none"] is None]
    text = as_screen(listing, 80)
    lines = text.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 80
    words = set(re.findall(r"[\w-]+", text))
    assert set(here) <= words
    assert {layer for layer in listing["layers"] if any(listing["fits"][it][layer] is None for it in here)} <= words
    for stack in here:
        listing["fits"][stack] = dict.fromkeys(listing["layers"], "program not installed: nothing; install it")
    text = as_screen(listing, 80)
    assert "nothing; install it" in text[text.index("MISSING") :]


def test_a_layer_is_on_the_servers_that_it_needs():
    listing = survey(kit())
    here = ["gunicorn", "nginx-gunicorn", "nginx-uwsgi", "uwsgi"]
    for name in here:
        listing["fits"][name] = dict.fromkeys(listing["layers"])
    for name in ("gunicorn", "uwsgi"):
        listing["fits"][name]["nginx-microcache"] = "nginx-microcache needs nginx in the chain"
    listing["fits"] = {name: listing["fits"][name] for name in here}
    lines = [" ".join(line.split()) for line in as_screen(listing, 80).splitlines()]
    assert "nginx-microcache stacks with nginx" in lines
    assert "page-cache any stack" in lines


def test_a_server_without_a_module_is_no_server_that_is_not_installed():
    listing = survey(kit())
    (apache,) = listing["stacks"]["apache-modwsgi"]["servers"]
    apache |= {"program": "/usr/sbin/apache2", "version": "2.4.1", "modules": {"wsgi": None}}
    assert "apache 2.4.1 (without its module wsgi)" in as_text(listing, 200)
    apache |= {"program": None}
    assert "apache (not installed)" in as_text(listing, 200)
