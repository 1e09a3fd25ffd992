"""Control groups: what is written where, and on a machine that has them that limits hold."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench import paths
from bench.cli import main
from bench.serve.catalog import catalog, sizes
from bench.serve.machine import cgroups, orphans
from bench.serve.machine.cgroups import Limits, Unavailable

MIB = 1024 * 1024
LIMITS = Limits(64 * MIB, 96 * MIB, 0.2)

UNIFIED = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0"
MEMORY_1 = "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0"
CPU_1 = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0"
# As a version 1 host has it: a hierarchy of version 2 without controllers.
UNIFIED_BESIDE_1 = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0"


# ------------------------------------------------------------------------------------------ a tree of plain files


def tree(root: Path, mounts: list[str], own: str, files: dict[str, str]) -> Path:
    """A machine's /proc and /sys as far as control groups need them."""
    for name, text in {"proc/self/mounts": "\n".join(mounts), "proc/self/cgroup": own, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def version_2(root: Path, own: str = "0::/user.slice", **files: str) -> Path:
    given = {
        "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids",
        "sys/fs/cgroup/cgroup.subtree_control": "cpu memory pids",
    }
    return tree(root, [UNIFIED], own, given | {f"sys/fs/cgroup/{name}": text for name, text in files.items()})


def test_version_2_is_written_as_its_documentation_says(tmp_path):
    group = cgroups.group(version_2(tmp_path))
    (folder,) = group.folders
    assert (folder.parent, folder.name[:9], folder.exists()) == (tmp_path / "sys/fs/cgroup", "benchapp-", False)
    folder.mkdir()
    for name in ("memory.swap.max", "memory.oom.group"):
        (folder / name).write_text("max")
    group.create(LIMITS)
    written = {path.name: path.read_text() for path in folder.iterdir()}
    assert written == {
        "memory.max": str(96 * MIB),
        "memory.low": str(64 * MIB),
        "memory.swap.max": "0",
        "memory.oom.group": "0",
        "cpu.max": "20000 100000",
    }
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n")
    assert group.oom_kills() == 2


def test_controllers_that_the_root_keeps_to_itself_are_passed_on(tmp_path):
    root = version_2(tmp_path, **{"cgroup.subtree_control": "pids"})
    cgroups.group(root)
    assert (root / "sys/fs/cgroup/cgroup.subtree_control").read_text() == "+cpu +memory"


def test_in_a_group_given_to_us_our_processes_step_aside_first(tmp_path):
    inner = "user.slice/run-1.scope"
    root = version_2(
        tmp_path,
        f"0::/{inner}",
        **{
            "cgroup.events": "populated 1",
            f"{inner}/cgroup.controllers": "cpu memory",
            f"{inner}/cgroup.subtree_control": "",
            f"{inner}/cgroup.procs": "4711",
        },
    )
    group = cgroups.group(root)
    own = root / "sys/fs/cgroup" / inner
    assert group.folders[0].parent == own
    assert (own / "benchapp-instrument/cgroup.procs").read_text() == "4711"
    assert (own / "cgroup.subtree_control").read_text() == "+cpu +memory"


def test_a_controller_that_is_not_passed_on_is_named(tmp_path):
    inner = "user.slice/run-1.scope"
    files = {"cgroup.events": "", f"{inner}/cgroup.controllers": "memory", f"{inner}/cgroup.subtree_control": ""}
    with pytest.raises(Unavailable) as caught:
        cgroups.group(version_2(tmp_path, f"0::/{inner}", **files))
    assert "no controller cpu is passed on to this user; see docs/methodology.md, or run it as root, or" in str(
        caught.value
    )


def test_version_1_has_a_directory_for_each_controller(tmp_path):
    root = tree(
        tmp_path,
        [MEMORY_1, CPU_1, UNIFIED_BESIDE_1],
        "4:memory:/box\n2:cpu,cpuacct:/\n0::/",
        {"sys/fs/cgroup/memory/box/tasks": "", "sys/fs/cgroup/unified/cgroup.controllers": ""},
    )
    (root / "sys/fs/cgroup/cpu,cpuacct").mkdir()
    group = cgroups.group(root)
    memory, cpu = group.folders
    assert [memory.parent, cpu.parent] == [root / "sys/fs/cgroup/memory/box", root / "sys/fs/cgroup/cpu,cpuacct"]
    memory.mkdir()
    (memory / "memory.memsw.limit_in_bytes").write_text("")
    group.create(LIMITS)
    assert {path.name: path.read_text() for path in memory.iterdir()} == {
        "memory.limit_in_bytes": str(96 * MIB),
        "memory.memsw.limit_in_bytes": str(96 * MIB),
        "memory.soft_limit_in_bytes": str(64 * MIB),
    }
    assert {path.name: path.read_text() for path in cpu.iterdir()} == {
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "20000",
    }
    (memory / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n")
    assert group.oom_kills() == 5


def test_a_machine_without_them_says_so(tmp_path):
    with pytest.raises(
        Unavailable, match=r"^no control groups for memory and cpu in this kernel or container; run it on"
    ):
        cgroups.group(tree(tmp_path, [], "", {}))


def test_a_user_without_permission_learns_how_to_get_it(tmp_path, monkeypatch):
    root = version_2(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(Unavailable) as caught:
        cgroups.group(root)
    folder = root / "sys/fs/cgroup"
    assert str(caught.value) == (
        f"{folder}: not writable by this user; run it as root, or by "
        "`systemd-run --user --scope -p Delegate=yes python -m bench ...`"
    )


# ------------------------------------------------------------------------------------------ this machine's own


@pytest.fixture
def group():
    try:
        created = cgroups.group()
        created.create(LIMITS)
    except Unavailable as error:
        pytest.skip(str(error))
    yield created
    created.remove()
    assert not any(folder.exists() for folder in created.folders)


@pytest.fixture
def python():
    """Starts Python code in a group, and ends what is left."""
    started = []

    def start(group: cgroups.Group, code: str) -> subprocess.Popen:
        argv = [*group.join, sys.executable, "-c", code]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


HOG = "x = []\nwhile True: x.append(b'x' * 1024 * 1024)"


def test_who_goes_beyond_the_limit_is_killed_and_nobody_else(group, python):
    small = python(group, "print('up', flush=True); input()")
    assert small.stdout.readline() == "up\n"
    assert all((folder / "cgroup.procs").read_text() == f"{small.pid}\n" for folder in group.folders)
    assert python(group, HOG).wait(60) == -signal.SIGKILL
    assert group.oom_kills() == 1
    assert small.poll() is None
    small.stdin.write("\n")
    small.stdin.flush()
    assert small.wait(60) == 0


def test_what_a_member_starts_is_limited_with_it(group, python):
    code = f"import subprocess, sys; print(subprocess.run([sys.executable, '-c', {HOG!r}]).returncode)"
    assert python(group, code).stdout.readline() == "-9\n"


def test_processor_time_is_held_to_the_quota(group, python):
    code = "import time\nb, c = time.monotonic(), time.process_time()\nwhile time.monotonic() < b + 1.5: pass\n"
    process = python(group, code + "print((time.process_time() - c) / (time.monotonic() - b))")
    # A fifth of a core. Other work on the machine makes it less, never more; without the quota it is nearly one.
    assert float(process.stdout.readline()) < 0.35


def test_a_group_is_removed_with_whatever_still_runs_in_it(group, python):
    process = python(group, "import time; print('up', flush=True); time.sleep(600)")
    process.stdout.readline()
    group.remove()
    assert process.wait(60) == -signal.SIGKILL
    assert not any(folder.exists() for folder in group.folders)


# ------------------------------------------------------------------------------------------ sizes


def test_the_sizes_are_those_of_the_report_and_of_a_container():
    limited = [size for size in catalog.read().sizes.values() if size.is_limited]
    by_name = {size.name: (size.guaranteed_mb, size.burstable_mb, size.cpus) for size in limited}
    assert by_name == {
        "bronze": (128, 256, 1),
        "silver": (384, 512, 1),
        "gold": (1024, 1536, 2),
        "container": (384, 512, 2),
    }


@pytest.mark.parametrize(
    "text, message",
    [
        ("[tiny]\nguaranteed_mb = 9\nburstable_mb = 8\ncpus = 1", "size tiny: use 0 < guaranteed_mb <= burstable_mb"),
        ("[tiny]\nguaranteed_mb = 8\nburstable_mb = 8\ncpus = 0", "size tiny: cpus must be a number above 0, not 0"),
        ("[tiny]\nguaranteed_mb = 8\nburstable_mb = 8\ncpus = 'one'", "cpus must be a number, not a string"),
        ("[tiny]\nmemory = 9", "unknown key 'memory'; known keys: name, guaranteed_mb, burstable_mb, cpus"),
        ("tiny = 9", "tiny: write each size as a separate table, [bronze]; not unlimited"),
        ("[tiny", "not valid TOML"),
    ],
)
def test_a_wrong_file_of_sizes_is_refused_in_one_line(tmp_path, monkeypatch, capsys, text, message):
    folder = tmp_path / "deploy"
    folder.mkdir()
    for name in ("servers", "stacks", "layers", "services"):
        (folder / name).symlink_to(paths.DEPLOY / name)
    shutil.copytree(paths.DEPLOY / "values", folder / "values")
    monkeypatch.setattr(paths, "DEPLOY", folder)
    (folder / "values" / "sizes.toml").write_text(text)
    assert main.main(["up", "gunicorn", "--size", "tiny"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"benchapp up: {folder / 'values' / 'sizes.toml'}: ") and message in line


def test_a_size_larger_than_the_machine_cannot_be_had(monkeypatch):
    monkeypatch.setattr(sizes.cpu_affinity, "affinity", lambda: (0,))
    assert sizes.problem(catalog.read().size("gold")) == "it has 2 CPUs and this machine 1"
    assert sizes.problem(sizes.UNLIMITED) == "" and sizes.group(sizes.UNLIMITED) is None


def test_a_killed_instrument_leaves_no_group(tmp_path, monkeypatch, group, python):
    monkeypatch.setattr(paths, "STATE", tmp_path)
    process = python(group, "import time; print('up', flush=True); time.sleep(600)")
    process.stdout.readline()
    register = orphans.Register(tmp_path / "scratch")
    register.add_group(group)
    assert orphans.clean() == 0, "its owner lives"
    register._record["owner"] = (2**22 + 5, 1.0)
    register._write()
    assert orphans.clean() == 1
    assert process.wait(60) == -signal.SIGKILL
    assert not any(folder.exists() for folder in group.folders)


def test_no_directory_but_our_own_is_ever_removed():
    assert cgroups.existing(["/sys/fs/cgroup/memory"], 1) is None
    assert cgroups.existing([], 2) is None


def test_removing_takes_no_time_when_there_is_nothing():
    began = time.monotonic()
    cgroups.Group((Path("/nonexistent/benchapp-x"),), 2).remove()
    assert time.monotonic() - began < 5


def test_without_permission_up_says_how_to_get_it_in_one_line(monkeypatch, capsys):
    def refused():
        raise Unavailable("/sys/fs/cgroup: not writable by this user; run it as root")

    monkeypatch.setattr(sizes.cgroups, "group", refused)
    assert main.main(["up", "gunicorn", "--size", "bronze"]) == 2
    assert capsys.readouterr().err == (
        "benchapp up: --size bronze is not available here: /sys/fs/cgroup: not writable by this user; run it as root\n"
    )
    assert main.main(["list", "--all"]) == 0
    line = "bronze 128 MiB of memory guaranteed, 256 MiB at most, 1 CPU; not here: /sys/fs/cgroup: not writable"
    assert line in " ".join(capsys.readouterr().out.split())
