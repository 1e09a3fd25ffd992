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


def test_files_that_differ_only_in_their_folder_are_shown_once(tmp_path):
    for deployment, extra in (("a~none", ""), ("a~varnish", "# layer\n"), ("b~none", "")):
        folder = tmp_path / "configs" / deployment
        folder.mkdir(parents=True)
        (folder / "same.conf").write_text(f"root /x/results/1/raw/{deployment}~r1/store;\n")
        (folder / "layer.conf").write_text(f"{deployment[0]}\n{extra}")
    groups = rendered_configs.by_stack(rendered_configs.read_configs(tmp_path), {})
    assert [(group.title, [(file.path, file.layers) for file in group.files]) for group in groups] == [
        ("a", [("layer.conf", ("none",)), ("layer.conf", ("varnish",))]),
        ("b", [("layer.conf", ())]),
        ("a and b", [("same.conf", ())]),
    ]
    assert groups[-1].files[0].text == "root $DEPLOYMENT/store;\n"


def test_the_files_of_variants_with_a_comma_are_shown_once(tmp_path):
    """The folder of such a deployment has another sign for the comma while it serves."""
    for processes in (1, 2):
        deployment = f"a@processes={processes},threads=1~none"
        folder = tmp_path / "configs" / deployment
        folder.mkdir(parents=True)
        (folder / "same.conf").write_text(f"root /x/raw/{deployment.replace(',', '+')}~r1/store;\n")
    (group,) = rendered_configs.by_stack(rendered_configs.read_configs(tmp_path), {})
    assert [(file.path, file.text) for file in group.files] == [("same.conf", "root $DEPLOYMENT/store;\n")]
