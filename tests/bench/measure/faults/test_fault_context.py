"""Effects of a fault's context on the site of a deployment."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from bench import paths
from bench.measure.faults.fault_context import FILES, FIRST, OUTSIDE, FaultNotApplicable, Versions, Workers
from bench.serve.inside import visitor_pages
from tests.waiting import until


class FakeReleases:
    """Releases with only the files of the probes."""

    def __init__(self, folder):
        self.current = self.folder = folder
        self.collected = []

    def add(self, name, change):
        release = self.folder / name
        for file in FILES:
            (release / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(paths.KIT / file, release / file)
        change(release)
        return release

    def collect_static(self, folder):
        self.collected.append(folder)

    def switch(self, folder):
        pass


def test_a_new_version_has_another_word_in_code_templates_and_static_files(tmp_path):
    versions = Versions(releases := FakeReleases(tmp_path))
    release = versions.new()
    assert all(
        "release-2" in (release / file).read_text() and FIRST not in (release / file).read_text() for file in FILES
    )
    assert (versions.word, releases.collected) == (FIRST, [release])
    versions.switch(release)
    assert (versions.word, versions.served) == ("release-2", release)


def test_a_broken_version_cannot_be_imported(tmp_path):
    release = Versions(FakeReleases(tmp_path)).new(broken=True)
    with pytest.raises(ImportError, match="broken on purpose"):
        exec((release / "bench" / "serve" / "inside" / "__init__.py").read_text())


def test_a_project_whose_code_is_elsewhere_has_no_new_version():
    project = SimpleNamespace(settings="shop.settings", folder=Path("/srv/shop"))
    releases = SimpleNamespace(current=Path("/"), project=SimpleNamespace(project=project))
    with pytest.raises(FaultNotApplicable) as refused:
        Versions(releases, OUTSIDE).new()
    assert str(refused.value) == (
        "the settings shop.settings are imported from outside of /srv/shop: a new version of that folder would not be "
        "served"
    )
    assert visitor_pages.OUTSIDE == OUTSIDE


MASTER = """
import signal, subprocess, sys
# It waits for none of them.
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(2):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def master():
    with subprocess.Popen([sys.executable, "-c", MASTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as popen:
        popen.stdout.readline()
        yield popen
        for child in psutil.Process(popen.pid).children():
            child.kill()


def test_a_worker_that_ends_is_counted_once(master):
    running = SimpleNamespace(chain=SimpleNamespace(servers=[SimpleNamespace(pid=master.pid)]))
    workers = Workers(running)
    assert workers.update() == 0
    psutil.Process(master.pid).children()[0].kill()
    until(workers.update, "it is noticed")
    assert workers.update() == 1
    assert Workers(running).update() == 0
