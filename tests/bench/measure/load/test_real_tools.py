"""The installed load tools, on a real server: they tell good responses from bad ones."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench import programs
from bench.measure import load
from bench.measure.load import LoadError
from bench.measure.run.load_process import TrialError, run
from tests.bench.measure.load.every_tool import all_tools, job_of, tools_with_keep_alive, tools_with_lists
from tests.bench.measure.load.load_target import BODY, target

pytestmark = pytest.mark.servers
# A tool that never waits would keep both cores busy.
PAUSE_S = 0.01
GOOD, ERROR, REDIRECT, DROP, HANG, REFUSED = "good", "error", "redirect", "drop", "hang", "refused"
LIST, BAD_LIST = "list", "bad list"


def scenario_paths(tool, scenario):
    mine = f"/{tool.name}"
    return {
        GOOD: (mine,),
        ERROR: ("/503",),
        REDIRECT: ("/302",),
        DROP: ("/drop",),
        HANG: ("/hang",),
        REFUSED: ("/",),
        LIST: (f"{mine}/1", f"{mine}/2", f"{mine}/3"),
        BAD_LIST: (f"{mine}/a", "/503", f"{mine}/b"),
    }[scenario]


def measured(tool, url, paths, directory, **how):
    """The figures of a real tool after a second of load, or its error.

    Waits for responses if they come: many tools load a busy machine.
    """
    directory.mkdir()
    timeout_s = 1 if "/hang" in paths else 8
    job = job_of(tool, base_url=url, paths=paths, connections=3, seconds=1, timeout_s=timeout_s, **how)
    try:
        return tool.parse(*run(tool.command(str(programs.find(tool.programs)), job), 3, directory / "load", 15))
    except (TrialError, LoadError) as error:
        return str(error)


@pytest.fixture(scope="module")
def site():
    with target(PAUSE_S) as running:
        yield running


@pytest.fixture(scope="module")
def outcomes(site, tmp_path_factory):
    """The figures of every installed tool in every scenario, all made side by side: their times do not matter."""
    directory = tmp_path_factory.mktemp("load")
    with socket.socket() as taken, ThreadPoolExecutor(8) as pool:
        # A port that is taken and does not listen refuses every connection.
        taken.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
        under_way = {
            (tool.name, scenario): pool.submit(
                measured,
                tool,
                nobody if scenario == REFUSED else site.url,
                scenario_paths(tool, scenario),
                directory / f"{tool.name} {scenario}",
            )
            for scenario in (GOOD, ERROR, REDIRECT, DROP, HANG, REFUSED, LIST, BAD_LIST)
            for tool in load.TOOLS
            if programs.find(tool.programs) and (tool.url_list or scenario not in (LIST, BAD_LIST))
        }
        return {key: future.result() for key, future in under_way.items()}


def of(outcomes, tool, scenario):
    if (tool.name, scenario) not in outcomes:
        pytest.skip(f"program not installed: {tool.name}")
    return outcomes[tool.name, scenario]


@all_tools
def test_good_responses_are_counted(tool, outcomes, site):
    figures = of(outcomes, tool, GOOD)
    assert figures.failure() is None
    assert figures.duration_s > 0.8
    # At the end a request of each connection may be under way, served and not counted.
    assert 0 <= site.requests[f"/{tool.name}"] - figures.requests_total <= 2 * 3
    assert figures.requests_per_second == pytest.approx(figures.requests_total / figures.duration_s)
    if tool.name != "siege":
        # siege counts in hundredths of a second and of a megabyte.
        assert figures.latency_max_ms > 0
        assert figures.bytes_per_second > len(BODY) * figures.requests_per_second * 0.9


@tools_with_lists
def test_every_address_of_a_list_is_requested_alike(tool, outcomes, site):
    figures = of(outcomes, tool, LIST)
    counts = [site.requests[path] for path in scenario_paths(tool, LIST)]
    assert figures.failure() is None
    assert min(counts) >= 0.9 * max(counts) - 3


@all_tools
@pytest.mark.parametrize("scenario", [ERROR, DROP, HANG, REFUSED])
def test_a_missing_or_bad_response_is_a_failure(tool, scenario, outcomes):
    figures = of(outcomes, tool, scenario)
    assert figures if isinstance(figures, str) else figures.failure()


@tools_with_lists
def test_one_bad_address_in_a_list_is_a_failure(tool, outcomes):
    assert of(outcomes, tool, BAD_LIST).failure()


@all_tools
def test_a_redirect_is_never_followed(tool, outcomes, site):
    figures = of(outcomes, tool, REDIRECT)
    assert site.requests["/"] == 0
    if tool.name == "ab":
        assert figures.responses_not_2xx >= figures.requests_total > 0


@tools_with_keep_alive
def test_connections_are_reused_unless_keep_alive_is_off(tool, site, tmp_path):
    if not programs.find(tool.programs):
        pytest.skip(f"program not installed: {tool.name}")
    before = site.connections
    measured(tool, site.url, ("/again",), tmp_path / "reused")
    between = site.connections
    figures = measured(tool, site.url, ("/again",), tmp_path / "closed", keep_alive=False)
    assert between - before <= 2 * 3
    assert site.connections - between >= figures.requests_total > 2 * 3
