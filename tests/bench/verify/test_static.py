"""The collected static files, by their addresses on pages."""

from dataclasses import replace

import pytest

from bench.serve.project.description import Description
from bench.verify.checks.static import is_compressed, source
from bench.verify.site import Site
from bench.verify.target_site import NO_COMMANDS


@pytest.fixture
def site(tmp_path):
    for name, content in (
        ("css/a.css", b""),
        ("css/a.0123456789ab.css", b"rewritten"),
        ("a b.js", b"script"),
        ("css/b.css", b"style"),
        ("css/b.css.gz", b"packed"),
    ):
        (tmp_path / "static" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "static" / name).write_bytes(content)
    (tmp_path / "secret.txt").write_text("secret")
    return Site({}, {}, tmp_path / "static", "/static/", NO_COMMANDS)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/static/css/a.css", b""),
        ("/static/css/a.0123456789ab.css", b"rewritten"),
        ("/static/css/b.0123456789ab.css", None),
        ("/static/a%20b.0123456789ab.js?v=1", b"script"),
        ("/static/../secret.txt", None),
    ],
)
def test_a_file_is_found_by_its_plain_and_by_its_hashed_name(site, path, content):
    assert source(site, path) == content


def test_compression_is_expected_if_a_compressed_copy_was_collected(site):
    assert is_compressed(site, "/static/css/b.css") and not is_compressed(site, "/static/css/a.css")
    # Of a strict site all are.
    assert is_compressed(replace(site, description=Description(strict=True)), "/static/css/a.css")
