"""The safety table and what it says of a deployment."""

from __future__ import annotations

from pathlib import Path

from bench.report import (
    safety,
)
from bench.report.arrange import arrange
from bench.report.write import write_report
from bench.results import records
from bench.results.folder import Folder, read_run
from tests.bench.report.pages import (
    Page,
    made,
    picked,
    read,
    shown,
)


def test_a_declared_check_is_shown_and_is_no_wrong_answer(plain):
    page = Page(shown(plain))
    assert "\N{CHECK MARK} 7 of 7 (1 declared)" in page.texts("td")
    assert "chunked bodies are refused by design" in page.texts("td")
    home = next(panel for panel in arrange(read_run(plain)).panels if panel.setting.workload == "home")
    assert home.row("uwsgi", "none").ranked


def checks(folder: Path) -> None:
    """What a layer's checks may come to."""
    more = [
        records.Outcome("uwsgi", "fragments", "hit", True, None, None, group="caching", figures={"hit_ratio": 0.98}),
        records.Outcome("gunicorn", "fragments", "hit", True, None, None, group="caching", figures={"hit_ratio": 0.5}),
        records.Outcome(
            "uwsgi", "fragments", "twice", True, None, None, group="stampede", not_tried="it takes seconds"
        ),
        records.Outcome("uwsgi", "fragments", "hosts", True, None, None, declared="one host only", group="web"),
        records.Outcome("nginx-uwsgi", "staticgenerator", "names", False, "404", "a file outside", group="names"),
    ]
    Folder(folder).append_checks(more)


def test_the_safety_table_has_a_word_for_each_layer_and_group(tmp_path):
    folder = made(tmp_path)
    checks(folder)
    found = safety.safety(read(folder))
    assert found.groups == ("behaviour", "caching", "web", "stampede", "names")
    words = {
        (layer, group): cell.word
        for layer in found.layers
        for group in found.groups
        if (cell := found.cell(layer, group))
    }
    assert words == {
        ("none", "behaviour"): "declared",
        ("fragments", "behaviour"): "pass",
        ("fragments", "caching"): "pass",
        ("fragments", "stampede"): "not tried",
        ("fragments", "web"): "declared",
        ("site-middleware", "behaviour"): "fail",
        ("staticgenerator", "behaviour"): "pass",
        ("staticgenerator", "names"): "fail",
    }
    page = Page(write_report(folder).read_text("utf-8"))
    cells = page.texts("td")
    for text in ("! declared1 declared", "\N{BALLOT X} fail1 fail", "\N{EN DASH} not tried1 not tried"):
        assert any(cell.replace(" ", "") == text.replace(" ", "") for cell in cells), text
    assert "one host only" in cells
    assert "it takes seconds" in cells
    assert "gunicorn 0.500" in " ".join(cells)
    # What was not tried is not counted with what was right.
    assert "\N{CHECK MARK} 8 of 8 (1 declared, 1 not tried)" in cells


def test_a_deployment_with_a_failed_check_is_never_picked(tmp_path):
    folder = made(tmp_path)
    checks(folder)
    assert not picked(read(folder))[0].startswith("Pick `nginx-uwsgi` with `staticgenerator`")
