"""Skip tests that need a program which is not installed; in continuous integration they fail instead."""

from __future__ import annotations

import os
import re
from collections.abc import Generator

import pytest

from bench import programs

# What `make servers` cannot mend: no package registry has Cherokee, the kubectl of Debian 12 is too old for the
# manifests, and a machine has the cores, the kernel and the rights that it has.
ALLOWED = re.compile(r"cherokee|kubectl|^one core$|^the kernel |root has no right to mount here")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.excinfo and call.excinfo.errisinstance(pytest.skip.Exception) and in_ci():
        reason = str(call.excinfo.value)
        if not ALLOWED.search(reason) and not ("root" in reason and os.geteuid() != 0):
            report.outcome, report.longrepr = "failed", f"skipped, and CI is set: {reason}"
    return report


def needs(*names: str) -> None:
    """Skip the test when one of these programs is not installed, naming it."""
    if missing := [name for name in names if programs.find([name], ["/usr/lib/postgresql/*/bin"]) is None]:
        pytest.skip(f"program not installed: {', '.join(missing)}")


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")
