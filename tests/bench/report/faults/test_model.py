"""The table to choose by says what visitors lost, and what it cannot say."""

from __future__ import annotations

import pytest

from bench.report.faults import model, texts
from bench.report.faults.model import BAD, NONE, PLAIN, Line
from bench.report.numbers import DASH
from bench.results.faults import read_faults
from tests.bench.report.faults import fault_folder
from tests.bench.report.faults.fault_folder import bad, good, outcome


@pytest.fixture
def arranged(tmp_path):
    def make(*outcomes, **more):
        return model.arrange(read_faults(fault_folder.make(tmp_path / "faults", list(outcomes), **more)))

    return make


def cells(found, number: int = 0) -> dict[str, list[Line]]:
    return dict(model.choice(found, found.deployments[number]))


def test_a_good_deployment_in_the_table(arranged):
    row = cells(arranged(*good("nginx-uwsgi")))
    assert row["a deploy"] == [Line("0 lost, mixes 0.4\N{NO-BREAK SPACE}s", "deploy"), Line("0 lost", "reload")]
    assert row["a process dies"] == [
        Line("1 lost, 0.04\N{NO-BREAK SPACE}s, by itself", "worker"),
        Line("12 lost, 1.8\N{NO-BREAK SPACE}s, by itself", "server"),
    ]
    assert row["front, service, database die"] == [Line("10 lost, 1.1\N{NO-BREAK SPACE}s, by itself", "front")]
    assert row["slow clients that stop it"] == [Line("none up to 200", "headers"), Line("none up to 200", "bodies")]
    assert row["garbage"] == [Line("0 5xx, 0 crashes, 31.5 B of log each")]
    assert row["memory"] == [Line(DASH, "", NONE)]
    assert row["something hangs"] == [Line("0 lost, gap 5.1\N{NO-BREAK SPACE}s", "server")]
    assert row["stale after a deploy"] == [Line("stale pages for 0.2\N{NO-BREAK SPACE}s")]


def test_a_bad_deployment_in_the_table(arranged):
    found = arranged(*bad("gunicorn"))
    row = cells(found)
    assert row["a deploy"] == [Line("0 lost, the new version never came", "deploy", BAD)]
    assert row["a process dies"] == [
        Line("VOIDED", "worker", NONE),
        Line("50 lost, not back while visitors asked", "server", BAD),
    ]
    assert row["slow clients that stop it"] == [Line("stops at 20", "bodies", PLAIN)]
    assert row["garbage"] == [Line("129 5xx, 4 crashes, 2,600 B of log each", "", BAD)]
    assert "front, service, database die" not in row
    assert cells(found, 1)["memory"] == [Line("2 processes killed, 2 lost")]


def test_wrong_answers_and_columns_without_a_fault(arranged):
    failed = {"status": "failed", "reason": "88 wrong answers", "wrong": 88}
    found = arranged(
        outcome("one", "worker", **failed), outcome("one", "application", mixed_s=0.1, stale_s=0.0, **failed)
    )
    row = cells(found)
    assert row["a process dies"] == [Line("0 lost, 88 wrong", "worker", BAD)]
    assert row["stale after a deploy"] == [Line("stale pages for 0\N{NO-BREAK SPACE}s")]
    assert list(row) == model.headings(found) == ["a deploy", "a process dies", "stale after a deploy"]


def test_rounds_that_differ_show_their_range_and_the_worst_of_them(arranged):
    found = arranged(
        outcome("one", "worker", 1, failed_new=0),
        outcome("one", "worker", 2, failed_new=1, recovery_s=0.1),
        outcome("one", "worker", 3, failed_new=2, recovery_s=0.5, status="failed", reason="2 of 121 requests failed"),
    )
    (line,) = cells(found)["a process dies"]
    assert line == Line("1 (0 to 2) lost, 0.1 (0 to 0.5)\N{NO-BREAK SPACE}s, by itself", "worker", BAD)


def test_the_last_outcome_of_a_repeated_fault_counts(arranged):
    voided = outcome("one", "worker", status="voided", reason="interference: other processes took 36 %")
    found = arranged(voided, outcome("one", "worker"))
    assert cells(found)["a process dies"] == [Line("0 lost", "worker")]
    assert found.count("VOIDED") == 0


def test_a_reason_stands_once_with_all_it_is_about(arranged):
    found = arranged(*good("one"), *good("two", layer="varnish"))
    assert ("it needs a database of its own", "database", "one; two, layer varnish") in found.reasons("skipped")


def test_findings_name_who_is_good(arranged):
    found = arranged(*good("one"), *bad("two"))
    assert cells(found, 1)["front, service, database die"] == [Line("not asked for", "", NONE)]
    sentences = dict(texts.findings(found))
    assert sentences == {
        "Deploy and reload": "2 of 2 deployments took a deploy and a reload without losing a request: `one` and `two`.",
        "Deaths": "1 of 2 deployments came back from every kill by themselves, as expected: `one`.",
        "Slow clients": "1 of 2 deployments served others beside 200 slow clients of every kind: `one`.",
        "Garbage": "1 of 2 deployments took no harm from malformed requests: `one`.",
    }
    assert "Deaths" not in dict(texts.findings(arranged_again(found)))


def test_findings_name_who_is_not_good_where_those_are_fewer(arranged):
    sentences = dict(texts.findings(arranged(*good("one"), *good("two"), *bad("three"))))
    assert sentences["Garbage"] == "2 of 3 deployments took no harm from malformed requests: all but `three`."


def arranged_again(found):
    """Only what was abused."""
    made = {place: {"malformed": made["malformed"]} for place, made in found.made.items() if "malformed" in made}
    return model.Faults(found.run, made)


def test_caveats_say_what_is_missing(arranged):
    notes = texts.caveats(arranged(*good("one"), finished=None))
    assert notes[0] == "These faults were not finished. The report shows those made so far."
    assert notes[1].startswith("1 round only")


def test_a_caveat_says_that_a_host_deploys_in_another_way(arranged):
    found = arranged(*good("one"))
    assert texts.WITHOUT_SYSTEMD in texts.caveats(found)
    assert texts.WITHOUT_SYSTEMD not in texts.caveats(arranged_again(found))


def test_every_fault_of_the_table_exists():
    from bench.faults.kinds import FAULTS

    names = {fault for parts in model.CHOICE.values() for fault, _, _ in parts}
    assert names | {*texts.REPLACED, *texts.SLOW} <= FAULTS.keys()
