"""`bench list`: what there is and what fits what."""

from __future__ import annotations

import json

from bench.catalog import catalog


def test_list_says_what_fits_and_why_not(bench):
    done = bench("list", "--json")
    listing = json.loads(done.stdout)
    assert listing["stacks"].keys() == catalog.read().stacks.keys()
    assert listing["layers"].keys() == catalog.read().layers.keys()
    assert listing["fits"]["gunicorn"]["none"] is None
    assert "it has no snippet for another server" in listing["fits"]["gunicorn"]["staticgenerator"]
    text = bench("list").stdout
    assert all(name in text for name in [*listing["stacks"], *listing["layers"]])
