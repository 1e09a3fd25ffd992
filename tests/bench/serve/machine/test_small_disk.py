"""A small disk that is filled on purpose."""

from __future__ import annotations

import os

import pytest

from bench.serve.machine import small_disk
from bench.serve.machine.small_disk import CannotMount, mounted


@pytest.fixture
def disk(tmp_path):
    try:
        with mounted(tmp_path) as disk:
            yield disk
    except CannotMount as error:
        pytest.skip(str(error))


def test_a_full_disk_takes_no_byte_and_then_no_file_and_is_unmounted(disk):
    (disk.folder / "before").write_bytes(b"x")
    disk.fill()
    with pytest.raises(OSError, match="No space left"):
        (disk.folder / "page").write_bytes(b"x")
    disk.free()
    disk.fill_names()
    with pytest.raises(OSError, match="No space left"):
        (disk.folder / "another").touch()
    disk.free()
    (disk.folder / "another").write_bytes(b"x")
    small_disk.unmount(disk.folder.parent)
    assert list(disk.folder.iterdir()) == []
    assert not os.path.ismount(disk.folder)


def test_only_root_can_mount_one(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(CannotMount, match="only root"), mounted(tmp_path):
        pass
