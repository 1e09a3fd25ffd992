"""Costs that a panel shows when one of its rows has them."""

from __future__ import annotations

from dataclasses import replace

from bench.report import extra_costs
from bench.report.arrange import arrange
from bench.results.folder import read_run
from tests.bench.report.pages import made


def test_database_connections_are_a_cost_where_they_were_counted(tmp_path):
    def counted(trial):
        if trial.layer == "none" and trial.status == "ok":
            return replace(trial, database_connections_peak=4 + trial.round, database_connections_left=0)
        return trial

    (panel,) = arrange(read_run(made(tmp_path, counted, rounds=3))).main_panels
    assert extra_costs.heads(panel) == ["processes", "database connections", "database connections left"]
    cells = {row.layer: extra_costs.cells(panel, row)[1:] for row in panel.rows if row.stack == "gunicorn" and row.ok}
    assert (cells["none"], cells["fragments"]) == (["6.00", "0"], ["not measured", "not measured"])
