"""The tiny benchmark and its folder, for the command that repeats one."""

from tests.bench.report.reproduction.conftest import folder, tiny, tiny_faults  # noqa: F401
