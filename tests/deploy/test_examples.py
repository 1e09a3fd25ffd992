"""deploy/examples is what a render writes, on any machine."""

from __future__ import annotations

import pytest

from bench import programs
from tests.deploy import examples


def test_the_examples_are_the_stacks_of_the_readme():
    assert len(examples.stacks()) == 10
    assert sorted(path.name for path in examples.FOLDER.iterdir()) == sorted(examples.stacks())


@pytest.mark.parametrize("stack", examples.stacks())
def test_an_example_is_what_is_rendered_if_nothing_is_installed(stack, monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "find", lambda *_: None)
    monkeypatch.setattr(programs, "module", lambda *_: None)
    examples.render(stack, tmp_path / stack)
    assert examples.files(tmp_path / stack) == examples.files(examples.FOLDER / stack), "write them: make examples"
    assert len((tmp_path / stack / "README.md").read_text().splitlines()) <= 12


def test_an_example_is_a_whole_host():
    files = examples.files(examples.FOLDER / "nginx-gunicorn")
    assert {"INSTALL.md", "benchapp-install", "benchapp-deploy", "sysusers.conf", "tmpfiles.conf", "site.env"} <= set(
        files
    )
    assert files["benchapp-deploy"][1]
    assert "systemd/benchapp-nginx.service" in files
    assert "timers/benchapp-backup.timer" in files
