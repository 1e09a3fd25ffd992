"""The figures frozen before the instrument was made smaller keep their places."""

from __future__ import annotations

from bench.verify.suite import all_checks
from tests.proofs import golden


def test_every_subject_that_was_checked_is_still_found_by_its_name():
    now = {item.name for item in all_checks()}
    then = {name for names in golden.frozen()["checks"].values() for name in names}
    assert len(then) > 120
    assert then - now == set(golden.MOVED)


def test_what_passed_on_a_pair_is_known():
    assert "status" in golden.passed("gunicorn", "none") and "stampede" not in golden.passed("gunicorn", "none")
    assert {"stampede", "told-of-writes"} <= golden.passed("nginx-gunicorn", "page-cache")


def test_the_run_of_an_earlier_version_is_refused_in_one_line(capsys):
    from bench.cli import main

    for words in (["report"], ["run", "--resume"]):
        assert main.main([*words, str(golden.FOLDER / "run")]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "earlier version" in line
