"""The tiny benchmark and its folder, for the command that repeats one."""

from tests.bench.report.reproduction.conftest import folder, tiny  # noqa: F401
