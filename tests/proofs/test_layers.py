"""The table of the layers' speed: ratios, bars, and wrong arguments in one line."""

from __future__ import annotations

import pytest

from bench.serve.catalog import catalog
from tests.proofs import layers
from tests.proofs.layers import LIMIT, Line


def line(name: str, *rates: float) -> Line:
    return Line(name, "a-stack", "http://x", "/", 1, [], list(rates), [rate * 2 for rate in rates])


def test_a_ratio_is_that_of_the_medians_and_is_held_against_its_bar():
    lines = [line("none", 1, 2, 90), line(LIMIT, 100, 110, 90), line("varnish", 44, 45, 46), line("fragments", 5, 5, 5)]
    by_name = {item.name: layers.as_json(item, lines) for item in lines}
    assert (by_name["varnish"]["ratio"], by_name["varnish"]["reached"]) == (0.45, True)
    assert (by_name["fragments"]["ratio"], by_name["fragments"]["reached"]) == (2.5, False)
    assert by_name["none"]["reached"] is None
    text = layers.table(lines).splitlines()
    assert [row.split()[0] for row in text] == ["layer", "none", "fragments", "varnish", "limit"]
    assert text[2].endswith("bar not reached")
    assert not text[3].endswith("bar not reached")


def test_every_layer_is_measured():
    assert set(layers.LAYERS) == set(catalog.read().layers)
    assert set(layers.BARS) <= set(layers.LAYERS)


@pytest.mark.parametrize(
    "words", [["--rounds", "0"], ["--stack", "varnish"], ["--layer", "nosuch"], ["--stack", "x=y"]]
)
def test_wrong_arguments_are_refused(words, capsys):
    with pytest.raises(SystemExit) as caught:
        layers.main(words)
    assert caught.value.code == 2
    assert "error: argument" in capsys.readouterr().err.splitlines()[-1]
