"""The benchmark of stacks against the plain commands of their servers: ratios, its table, wrong arguments."""

from __future__ import annotations

import pytest

from bench.errors import BenchError
from bench.serve.catalog import catalog
from tests.proofs import plain
from tests.proofs.plain import BAR, PLAIN, SERVERS, STACK, Pair


def pair(of_stack: float, disturbances=(0.5, 1.0, 1.1)) -> Pair:
    result = Pair("gunicorn", "/posts/")
    for number, disturbance in enumerate(disturbances, 1):
        result.rates[PLAIN][number] = 100 * disturbance
        result.rates[STACK][number] = 100 * disturbance * of_stack
        result.per_cpu_s[PLAIN][number] = result.per_cpu_s[STACK][number] = 80.0
    return result


def test_a_ratio_is_that_of_the_pairs_and_is_held_against_the_bar():
    assert not pair(BAR + 0.01).below
    assert pair(BAR - 0.01).below
    good, bad = plain.table([pair(1.2), pair(0.5)]).splitlines()[2:4]
    assert good == (
        "| gunicorn | gunicorn | /posts/ | 100 | 50 to 110 | 120 | 60 to 132 "
        "| 1.20 | 1.20 to 1.20 | 1.00 | 1.00 to 1.00 |"
    )
    assert bad.endswith(" below the bar")


def test_the_exit_status_says_whether_one_is_below_the_bar(monkeypatch, tmp_path, capsys):
    ratios = {"gunicorn": 1.0, "uwsgi": 0.9}

    def measure(name, args):
        if name not in ratios:
            raise BenchError("it did not come up")
        return [pair(ratios[name])]

    monkeypatch.setattr(plain, "measure", measure)
    assert plain.main(["gunicorn"]) == 0
    assert plain.main(["gunicorn", "uwsgi", "--json", str(tmp_path / "figures.json")]) == 1
    assert plain.main(["granian", "gunicorn"]) == 1
    assert "granian failed: it did not come up" in capsys.readouterr().err
    assert (tmp_path / "figures.json").read_text().count('"documentation": "https://') == 2


def test_every_application_server_with_a_command_is_measured():
    known = {stack.servers[0].name for stack in catalog.read().stacks.values()}
    measured = {catalog.read().stacks[server.stack].servers[0].name for server in SERVERS.values()}
    assert known - measured == {"flup"}


@pytest.mark.parametrize("words", [["nosuch"], ["--rounds", "0"]])
def test_wrong_arguments_are_refused(words, capsys):
    with pytest.raises(SystemExit) as caught:
        plain.main(words)
    assert caught.value.code == 2
    assert "error: " in capsys.readouterr().err.splitlines()[-1]
