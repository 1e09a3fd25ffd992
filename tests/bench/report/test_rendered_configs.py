"""The rendered configuration files in the report."""

from __future__ import annotations

from bench.report import (
    rendered_configs,
)


def test_links_are_skipped_and_binaries_are_only_named(hostile):
    files = rendered_configs.read_configs(hostile)["nginx-uwsgi~staticgenerator"]
    found = {file.path: file.text for file in files}
    assert "link.conf" not in found
    assert found["binary.bin"] == "(not a text file)"


def test_a_long_file_is_cut_and_says_so(tmp_path):
    folder = tmp_path / "configs" / "a~none"
    folder.mkdir(parents=True)
    (folder / "long.conf").write_text("x" * (rendered_configs.MAX_BYTES + 5))
    (file,) = rendered_configs.read_configs(tmp_path)["a~none"]
    assert file.text.endswith("(cut here: the file is longer than 200,000 bytes)")
