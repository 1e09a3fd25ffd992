"""The image with every server of Debian 12: it has what their manifests name, and a checker of files passes it."""

from __future__ import annotations

import re
import subprocess

import pytest

from bench import paths, programs
from bench.serve.catalog import catalog

TEXT = (paths.KIT / "Containerfile").read_text("utf-8")


def test_it_installs_the_packages_of_all_servers_and_services():
    known = catalog.read()
    parts = [*known.stacks.values(), *known.layers.values()]
    servers = [server for part in parts for server in part.servers]
    packages = {name for item in (*servers, *known.services.values()) for name in item.packages}
    installed = set(TEXT.rpartition("FROM ")[2].split())
    assert len(packages) > 8
    assert packages - installed == set()


def test_it_builds_the_mod_wsgi_of_make():
    makefile = (paths.KIT / "Makefile").read_text("utf-8")
    version = re.search(r"^MODWSGI := (.+)$", makefile, re.M)[1]
    assert f"'{version}'" in TEXT


def test_a_checker_finds_nothing():
    hadolint = programs.find(["hadolint"])
    if hadolint is None:
        pytest.skip("program not installed: hadolint")
    argv = [str(hadolint), "--ignore", "DL3008", str(paths.KIT / "Containerfile")]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
