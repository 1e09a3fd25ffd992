"""Small right projects of unusual kinds: `verify` charges no stack with what they do by themselves."""

from __future__ import annotations

from itertools import product

import pytest

from tests import kinds
from tests.deploy.running import FEW, command, runnable
from tests.projects import open_folder

pytestmark = pytest.mark.servers

LAYERS = ("page-cache", "varnish", "staticgenerator")
# What each finds wrong, the others do not.
ALWAYS = (("clock", "page-cache"), ("i18n", "staticgenerator"), ("latin1", "varnish"))
# Checks that claim to be another client.
BEHIND = ("client", "underscores", "forged-names", "odd-bytes")
ALL = list(product(kinds.KINDS, LAYERS))


@pytest.mark.parametrize(
    ("name", "layer"),
    [*ALWAYS, *(pytest.param(*case, marks=pytest.mark.matrix) for case in ALL if case not in ALWAYS)],
)
def test_a_right_project_passes(name, layer):
    stack = kinds.KINDS[name].stack
    runnable(stack, layer)
    few = [word for value in FEW.items() for word in ("--set", "=".join(map(str, value)))]
    with open_folder() as folder:
        kinds.make(folder, name)
        words = ["verify", stack, "--layer", layer, "--project", str(folder), "--quick", *few]
        done = command("-m", "bench", *words, timeout_s=300)
    assert done.returncode == 0, done.stdout + done.stderr
    # A page that differs by itself is named.
    assert ("/order/ differs from one rendering to the next: " in done.stderr) == (name == "clock")


@pytest.mark.parametrize("stack", ["gunicorn", pytest.param("nginx-gunicorn", marks=pytest.mark.matrix)])
def test_a_listener_behind_a_balancer_is_verified_as_it_comes(stack):
    runnable(stack)
    with open_folder() as folder:
        kinds.make(folder, "nodb")
        words = ["verify", stack, "--layer", "none", "--project", str(folder), "--set", "listener=behind"]
        named = [word for name in BEHIND for word in ("--check", name)]
        done = command("-m", "bench", *words, *named, "--set", "processes=1", timeout_s=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(BEHIND)} checks passed" in done.stderr
