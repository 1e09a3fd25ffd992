"""The machine as results describe it."""

from __future__ import annotations

import socket
import subprocess

from bench.measure.records import records
from bench.measure.run import machine_facts
from bench.serve.machine import ports


def test_the_machine_is_described_without_its_name():
    about = machine_facts.environment({"server": "1.0"}, records.LoadTool("wrk", "4.1.0", False))
    assert about.cores >= 1 and about.memory_bytes > 0
    assert about.kernel.startswith("Linux ")
    assert about.packages["Django"].count(".") >= 1
    assert "flup-py3" in about.packages, "an extra that is installed"
    assert not hasattr(about, "hostname")


def test_a_folder_that_is_no_checkout_has_no_commit(tmp_path):
    assert machine_facts.git_state(tmp_path) == (None, None)


def test_a_checkout_with_changes_says_so(tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "file").write_text("1")
    subprocess.run([*git, "add", "file"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "One"], check=True)
    commit, dirty = machine_facts.git_state(tmp_path)
    assert len(commit) == 40 and dirty is False
    (tmp_path / "file").write_text("2")
    assert machine_facts.git_state(tmp_path) == (commit, True)


def test_a_processor_that_does_not_say_its_name_has_none(tmp_path):
    (tmp_path / "cpuinfo").write_text("processor : 0\n")
    assert machine_facts.cpu_model(tmp_path / "cpuinfo") is None


def test_paths_and_listening_ports_do_not_count_in_a_hash(tmp_path):
    hashes = []
    for number in (1, 2):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        with socket.create_server(("127.0.0.1", ports.free_port())) as server:
            port = server.getsockname()[1]
            (folder / "a.conf").write_text(f"listen 127.0.0.1:{port};\nroot {folder}/store;\nbacklog 1024;\n")
            hashes.append(machine_facts.config_hashes(folder, {str(folder): "RUN"}))
    assert hashes[0] == hashes[1]
    (folder / "a.conf").write_text("listen 127.0.0.1:PORT;\nroot RUN/store;\nbacklog 2048;\n")
    assert machine_facts.config_hashes(folder, {}) != hashes[0]
