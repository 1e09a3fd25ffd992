"""requirements.txt, requirements-dev.txt, and the lock files that a production host installs."""

import re
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bench import paths

# The Pythons that `make lock` pins packages for.
PYTHONS = ("3.11.9", "3.12.1", "3.13.0", "3.14.0")
# The files that pyproject.toml names as extras.
EXTRAS = ("requirements-psycopg3.txt", "requirements-flup.txt")


def lines_of(name):
    """The lines of a requirements file that name a package."""
    text = (paths.KIT / name).read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith(("#", "-r "))]


def for_a_host():
    """What a production host installs: the sections of requirements.txt before the one that says so."""
    text = (paths.KIT / "requirements.txt").read_text("utf-8")
    before, marker, _ = text.partition("# Not for a production host\n")
    assert marker
    return [Requirement(line.split("#")[0]) for line in before.splitlines() if line and not line.startswith("#")]


def pins(name, python):
    """Package -> the version that a lock file pins on that Python; every pin has a hash."""
    blocks = re.split(r"\n(?=[a-z])", (paths.KIT / name).read_text("utf-8"))[1:]
    assert all("--hash=sha256:" in block for block in blocks)
    found = [Requirement(block.split(" \\\n")[0]) for block in blocks]
    environment = {"python_version": python.rpartition(".")[0], "python_full_version": python, "sys_platform": "linux"}
    chosen = [item for item in found if not item.marker or item.marker.evaluate(environment)]
    return {canonicalize_name(item.name): str(item.specifier).removeprefix("==") for item in chosen}


@pytest.mark.parametrize(
    "name", ["requirements.txt", *EXTRAS, "requirements-dev.txt", "requirements-docs.txt", "requirements-hosts.txt"]
)
def test_every_requirement_says_why(name):
    unexplained = [line for line in lines_of(name) if "  # " not in line]
    assert not unexplained


def test_every_extra_is_a_file_of_pyproject():
    project = tomllib.loads((paths.KIT / "pyproject.toml").read_text("utf-8"))
    extras = project["tool"]["setuptools"]["dynamic"]["optional-dependencies"]
    assert extras == {name.removeprefix("requirements-").removesuffix(".txt"): {"file": [name]} for name in EXTRAS}


def test_what_make_bench_installs_has_neither_the_other_driver_nor_a_dead_server():
    wanted = {canonicalize_name(Requirement(line.split("#")[0]).name) for line in lines_of("requirements.txt")}
    extra = {canonicalize_name(Requirement(line.split("#")[0]).name) for name in EXTRAS for line in lines_of(name)}
    assert extra == {"psycopg", "flup-py3"}
    assert "psycopg2-binary" in wanted and not wanted & extra


# Versions with published holes.
HOLES = ("gunicorn==26.0.0", "granian==2.7.3")


@pytest.mark.parametrize("hole", HOLES)
def test_no_version_with_a_published_hole_is_taken(hole):
    wanted = {requirement.name: requirement.specifier for requirement in for_a_host()}
    name, _, version = hole.partition("==")
    assert not wanted[name].contains(version)


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_file_pins_what_a_host_installs(python):
    pinned = pins("requirements.lock", python)
    for wanted in for_a_host():
        version = pinned.get(canonicalize_name(wanted.name))
        assert version and wanted.specifier.contains(version), f"run `make lock`: {wanted} is pinned as {version}"


def test_the_lock_file_has_no_tool_of_development_or_instrument():
    host = {canonicalize_name(wanted.name) for wanted in for_a_host()}
    files = ("requirements.txt", *EXTRAS, "requirements-dev.txt")
    others = [line.split("#")[0] for name in files for line in lines_of(name)]
    others = {canonicalize_name(Requirement(line).name) for line in others} - host
    assert {"pytest", "ruff", "django-debug-toolbar", "flup-py3", "jinja2"} <= others
    assert not others & pins("requirements.lock", PYTHONS[0]).keys()


def test_mod_wsgi_is_pinned_as_the_makefile_asks():
    wanted = re.search(r"^MODWSGI := (.+)$", (paths.KIT / "Makefile").read_text("utf-8"), re.M)
    (version,) = pins("requirements-modwsgi.lock", PYTHONS[0]).values()
    assert Requirement(wanted[1]).specifier.contains(version)


def test_both_lock_files_are_checked():
    makefile = (paths.KIT / "Makefile").read_text("utf-8")
    rule = makefile.partition("\nlock-check:")[2].partition("\n\n")[0]
    assert re.findall(r"cmp (\S+)", rule) == ["requirements.lock", "requirements-modwsgi.lock"]


def test_an_audit_reads_both_lock_files_and_fails_for_what_it_cannot_look_up(tmp_path):
    asked = ["make", "--dry-run", "audit", f"VENV={tmp_path}"]
    done = subprocess.run(asked, cwd=paths.KIT, capture_output=True, text=True, check=True)
    audit = done.stdout.partition("pip-audit ")[2]
    assert re.findall(r"-r (\S+)", audit) == ["requirements.lock", "requirements-modwsgi.lock"]
    assert "--strict" in audit
