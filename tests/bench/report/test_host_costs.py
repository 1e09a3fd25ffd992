"""What each host used, in the report of a run over several hosts."""

from __future__ import annotations

from dataclasses import replace

from bench.report import host_costs, html
from bench.results.hosts import HostCosts
from tests.bench.report.pages import made, read, rows_of

BUSY = HostCosts(sampled_s=10.0, cores=2, cpu_seconds=5.0, sent_bytes=12_500_000, requests=60, requests_share=0.6)
SILENT = HostCosts(not_sampled="connection refused")


def on_hosts(trial):
    """The trials of one case, over two web hosts of which one could not be asked in the second round."""
    if (trial.stack, trial.layer, trial.status) != ("uwsgi", "none", "ok"):
        return trial
    busy = replace(BUSY, cpu_seconds=BUSY.cpu_seconds * trial.round)
    return replace(trial, hosts={"web1": busy, "web2": SILENT if trial.round == 2 else BUSY, "db1": SILENT})


def test_each_host_has_the_median_of_its_rounds(tmp_path):
    report = read(made(tmp_path, on_hosts, rounds=3))
    (panel,) = report.main_panels
    assert host_costs.heads(panel) == ["CPU, % of its cores", "sent Mbit/s", "requests, %"]
    wanted = [
        ["uwsgi", "none", "web1", "50.0", "10.0", "60.0"],
        ["uwsgi", "none", "web2", "25.0", "10.0", "60.0"],
        ["uwsgi", "none", "db1", *["not measured"] * 3],
    ]
    assert [[row.stack, row.layer, host, *texts] for row, host, texts in host_costs.rows(panel)] == wanted
    shown = rows_of(html.render(report, ()))
    assert [row for row in shown if row[2:3] in (["web1"], ["web2"], ["db1"])] == wanted


def test_a_run_on_one_host_has_no_such_table(tmp_path):
    report = read(made(tmp_path, rounds=1))
    assert host_costs.heads(report.main_panels[0]) == [] == host_costs.rows(report.main_panels[0])
    assert "Costs per host" not in html.render(report, ())
