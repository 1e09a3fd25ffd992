"""In CI, a test without its program fails."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench import paths

TESTS = """
import pytest


def test_it_skips():
    pytest.skip({reason!r})


@pytest.mark.skipif(True, reason={reason!r})
def test_its_mark_skips():
    pass


@pytest.mark.xfail
def test_it_is_expected_to_fail():
    assert False
"""
MISSING = "program not installed: nginx"
NO_GROUPS = "no control groups for memory and cpu in this kernel or container; run it on the host itself"
CHEROKEE = "program not installed: cherokee-worker or cherokee; no package registry has Cherokee"
NO_RIGHT = "no machine can be booted: root has no right to mount here: mount: /tmp/machine: permission denied."
NO_BOOT = "no machine can be booted: Failed to start"


@pytest.mark.parametrize(
    ("ci", "reason", "fails"),
    [
        ("", MISSING, False),
        ("false", MISSING, False),
        ("true", MISSING, True),
        ("true", NO_GROUPS, True),
        ("true", CHEROKEE, False),
        ("true", NO_RIGHT, False),
        ("true", NO_BOOT, True),
    ],
)
def test_a_missing_program_fails_in_ci_only(tmp_path, monkeypatch, ci, reason, fails):
    monkeypatch.setenv("CI", ci)
    (tmp_path / "test_it.py").write_text(TESTS.format(reason=reason))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    argv = [sys.executable, "-m", "pytest", "-p", "tests.skips", "-p", "no:django", "-p", "no:cacheprovider", tmp_path]
    done = subprocess.run(argv, cwd=paths.KIT, capture_output=True, text=True)
    # What fails before a test begins is an error.
    assert ("1 failed, 1 xfailed, 1 error" if fails else "2 skipped, 1 xfailed") in done.stdout
    assert (f"CI is set: {reason}" in done.stdout) is fails
