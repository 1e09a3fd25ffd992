"""Files below a folder."""

from __future__ import annotations

import shutil

from bench.paths import entries_below


def test_folders_that_disappear_while_they_are_listed_are_left_out(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name / "below").mkdir(parents=True)
        (tmp_path / name / "below" / "page.html").touch()
    assert len(list(entries_below(tmp_path))) == 6
    names = []
    for path in entries_below(tmp_path):
        names.append(path.name)
        if path.name == "below" and names.count("below") == 1:
            for name in ("first", "second"):
                shutil.rmtree(tmp_path / name)
    assert sorted(names) == ["below", "first", "second"]
