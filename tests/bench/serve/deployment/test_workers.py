"""The number of processes of `processes = auto`."""

from __future__ import annotations

import pytest

from bench.errors import BenchError
from bench.serve.catalog.sizes import Size
from bench.serve.deployment import case as cases
from bench.serve.deployment import workers
from bench.serve.deployment.database import NO_DATABASE
from bench.serve.machine import cgroups
from tests.cases import kit, production


def size(cpus: float, memory_mb: int) -> Size:
    return Size("test", memory_mb, memory_mb, cpus)


@pytest.mark.parametrize(
    ("cpus", "memory_mb", "worker_mb", "threads", "number"),
    [
        (1, 2000, 60, 1, 3),
        (2, 2000, 60, 1, 5),
        (0.5, 2000, 60, 1, 2),
        (2, 512, 150, 1, 2),
        (2, 64, 60, 1, 1),
        (2, 2000, 60, 4, 2),
        (4, 1000, 300, 16, 2),
    ],
)
def test_processors_and_memory_limit_it(cpus, memory_mb, worker_mb, threads, number):
    count, reason = workers.fitting(size(cpus, memory_mb), worker_mb, threads)
    assert count == number
    assert f"processes=auto: {number}, " in reason and "size test" in reason


def test_without_a_size_they_are_those_of_the_control_group(tmp_path):
    root = fake_root(tmp_path, {"": {}, "box": {"cpu.max": "150000 100000", "memory.max": "536870912"}})
    assert cgroups.own_limits(root) == (1.5, 512 * 2**20)


def test_a_group_has_the_limits_of_those_above_it(tmp_path):
    limits = {"": {}, "box": {"cpu.max": "100000 100000"}, "box/in": {"cpu.max": "max 100000", "memory.max": "max"}}
    assert cgroups.own_limits(fake_root(tmp_path, limits)) == (1.0, None)


def fake_root(folder, groups):
    """A root with the last of these control groups as that of the process."""
    mount = folder / "sys/fs/cgroup"
    for name, files in groups.items():
        (mount / name).mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (mount / name / file).write_text(f"{text}\n")
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/cgroup").write_text(f"0::/{list(groups)[-1]}\n")
    (folder / "proc/self/mounts").write_text("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    return folder


def test_a_case_has_the_number_and_says_why():
    case = cases.must_resolve(
        kit(), "gunicorn", size="silver", changes={"processes": "auto", "threads": 1}, database=NO_DATABASE
    )
    assert case.settings["processes"] == 3
    assert any(note.startswith("processes=auto: 3, limited by the processors of size silver") for note in case.notes)
    assert not any("1 processors" in note for note in case.notes)


def test_a_server_of_one_process_keeps_it():
    case = cases.must_resolve(kit(), "waitress", size="gold", changes={"processes": "auto"}, database=NO_DATABASE)
    assert case.settings["processes"] == 1


def test_nothing_is_known_of_a_host_without_a_size():
    with pytest.raises(BenchError, match="give --size, or a number"):
        production("nginx-gunicorn", processes="auto")
    assert production("nginx-gunicorn", size="silver", processes="auto").settings["processes"] == 3


def test_the_memory_of_a_worker_is_measured():
    assert 15 < kit().facts.worker_mb < 200


def test_it_is_a_value_of_a_variant_too():
    case = cases.must_resolve(kit(), "gunicorn@processes=auto,threads=1", size="silver", database=NO_DATABASE)
    assert (case.stack.name, case.settings["processes"]) == ("gunicorn@processes=auto,threads=1", 3)
