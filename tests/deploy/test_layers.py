"""Layers over each other and over stacks: what fits, and what real servers answer."""

from __future__ import annotations

import pytest

from bench import compose, manifest
from bench.compose import Composition, Skip
from tests.deploy.conftest import command


@pytest.mark.parametrize(
    ("stack", "layers", "says"),
    [
        ("nginx-uwsgi", "staticgenerator+nginx-microcache", "staticgenerator and nginx-microcache both bring nginx."),
        ("nginx-uwsgi", "nginx-memcached+nginx-microcache", "nginx-memcached and nginx-microcache both bring nginx."),
        ("nginx-apache-modwsgi", "staticgenerator+apache-cache", "staticgenerator and apache-cache both bring apache."),
    ],
)
def test_two_layers_in_one_place_are_a_skip_with_its_reason(stack, layers, says):
    composed = compose.compose(compose.stack(stack), compose.layers(layers))
    assert isinstance(composed, Skip)
    assert says in composed.reason
    assert composed.reason.endswith(": join layers that work in different places")


@pytest.mark.parametrize("words", [["up", "nginx-uwsgi"], ["render", "nginx-uwsgi", "--to", "/nowhere/x"]])
def test_a_command_says_why_two_layers_do_not_go_together(words):
    done = command("-m", "bench", *words, "--layer", "staticgenerator+nginx-microcache")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "staticgenerator and nginx-microcache both bring nginx.http.conf" in done.stderr


@pytest.mark.parametrize("one", manifest.layers())
@pytest.mark.parametrize("other", ["fragments", "site-middleware", "varnish"])
def test_layers_in_different_places_go_together(one, other):
    if one in (other, "none"):
        pytest.skip("the same layer, or none")
    layers = compose.layers(f"{one}+{other}")
    fitting = [stack for stack in manifest.stacks().values() if not any(compose.misfit(stack, it) for it in layers)]
    assert fitting
    for stack in fitting:
        composed = compose.compose(stack, layers)
        assert isinstance(composed, Composition) or "not installed" in composed.reason
