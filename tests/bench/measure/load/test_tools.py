"""Load tools: their commands, and the choice between them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import BenchError
from bench.measure import load
from bench.measure.load.ab import Ab
from bench.measure.load.siege import Siege
from bench.measure.load.wrk import Wrk
from tests.bench.measure.load.every_tool import JOB, all_tools, job_of


@all_tools
def test_the_number_of_connections_and_the_address_are_in_the_command(tool):
    command = tool.command("/bin/tool", job_of(tool, connections=7))
    text = " ".join([*command.argv, *command.files.values()])
    assert command.argv[0] == "/bin/tool"
    assert "7" in text and "http://127.0.0.1:1" in text


def test_wrk_shares_its_connections_evenly_among_threads():
    for connections, threads, expected in ((25, 2, "-t1"), (16, 2, "-t2"), (9, 4, "-t3"), (1, 4, "-t1")):
        job = replace(JOB, connections=connections, threads=threads)
        assert Wrk().command("wrk", job).argv[1] == expected


def test_keep_alive_is_requested_or_not():
    closed = replace(JOB, keep_alive=False)
    assert "-k" in Ab().command("ab", JOB).argv and "-k" not in Ab().command("ab", closed).argv
    assert Wrk().command("wrk", closed).argv[-1] == "close"
    assert "connection = close" in Siege().command("siege", closed).files[".siege/siege.conf"]


def installed(*names):
    return lambda wanted: next((Path("/bin") / name for name in wanted if name in names), None)


ONE, MANY = [("/",)], [("/",), ("/", "/a")]


@pytest.mark.parametrize(
    "workloads, there, wanted, expected",
    [
        (MANY, ["wrk", "ab", "siege", "python3"], None, "wrk"),
        (ONE, ["ab", "siege", "python3"], None, "ab"),
        (MANY, ["ab", "siege", "python3"], None, "closedloop"),
        (ONE, ["siege", "python3"], None, "closedloop"),
        (ONE, ["wrk", "ab", "siege"], "siege", "siege"),
    ],
)
def test_the_best_tool_that_is_installed_and_fits_is_chosen_or_the_one_that_is_wanted(
    workloads, there, wanted, expected
):
    tool, program = load.choose(workloads, installed(*there), wanted)
    assert (tool.name, program) == (expected, f"/bin/{'python3' if expected == 'closedloop' else expected}")


@pytest.mark.parametrize(
    "workloads, there, wanted, message",
    [
        (ONE, ["wrk"], "siege", "--tool siege is not installed; install it, as `make servers` does in a clone"),
        (MANY, ["ab"], "ab", "--tool ab loads a single URL; choose workloads of one URL, or another tool"),
    ],
)
def test_a_tool_that_cannot_be_chosen_is_an_error_of_one_line(workloads, there, wanted, message):
    with pytest.raises(BenchError) as error:
        load.choose(workloads, installed(*there), wanted)
    assert str(error.value) == message


def test_the_open_loop_has_a_separate_tool():
    assert load.choose(MANY, installed("wrk", "python3"), mode="open")[0].name == "openloop"
    with pytest.raises(BenchError, match="--tool wrk makes no open loop; leave it out"):
        load.choose(MANY, installed("wrk", "python3"), "wrk", "open")
