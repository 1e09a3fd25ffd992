"""The whole suite through the front port of real deployments: every stack without a layer, every layer on one stack."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from bench import compose, deployment, manifest, site
from bench.identity import worker
from bench.verify import Verifier

ROWS = "2000"


def _pairs() -> list[tuple[str, str]]:
    """Every stack with no layer, and every layer on the last stack that takes it."""
    stacks, layers = manifest.stacks(), manifest.layers()
    pairs = [(stack, manifest.NO_LAYER) for stack in stacks]
    for layer in layers.values():
        fitting = [name for name, stack in stacks.items() if not compose.misfit(stack, layer)]
        if layer.name != manifest.NO_LAYER and fitting:
            pairs.append((fitting[-1], layer.name))
    return pairs


@pytest.fixture(scope="module")
def database():
    """A small site of its own, in a directory that servers may write to."""
    folder = Path(tempfile.mkdtemp(prefix="verify-", dir="/tmp"))
    folder.chmod(0o755)
    identity = worker()
    identity.give(folder)
    url = f"sqlite:///{folder / 'site.sqlite3'}"
    try:
        site.manage(["migrate", "--verbosity", "0"], url, identity)
        site.manage(["loadfixtures", "--rows", ROWS], url, identity)
        yield url
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def rows_before(database):
    return rows_of(database)


def rows_of(url: str) -> str:
    """How many rows the site says it has."""
    return site.manage(["siterows", "--json"], url, worker())


@pytest.fixture(scope="module")
def verifier():
    return Verifier()


@pytest.mark.servers
@pytest.mark.parametrize(("stack", "layer"), _pairs())
def test_every_answer_is_right(stack, layer, database, rows_before, verifier):
    composed = compose.compose(compose.stack(stack), compose.layers(layer))
    if isinstance(composed, compose.Skip):
        pytest.skip(composed.reason)
    with deployment.deployed(stack, layer, database=database) as running:
        outcomes = verifier.verify(running)
    assert [item for item in outcomes if not item.ok] == []
    # The account and the comment are gone again.
    assert rows_of(database) == rows_before
