"""The packages that pyproject.toml lists, and the lock files that a production host installs."""

import re
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bench import paths

# The Pythons that `make lock` pins packages for.
PYTHONS = ("3.11.9", "3.12.1", "3.13.0", "3.14.0")
PROJECT = tomllib.loads((paths.KIT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def wanted(*extras):
    """The requirements of these extras, except other extras; without one, of the instrument."""
    lines = [line for extra in extras for line in EXTRAS[extra]] if extras else PROJECT["dependencies"]
    return [Requirement(line) for line in lines if not line.startswith("benchapp[")]


def names(requirements):
    return {canonicalize_name(requirement.name) for requirement in requirements}


def pins(name, python):
    """Package -> the version that a lock file pins on that Python; every pin has a hash."""
    blocks = re.split(r"\n(?=[a-z])", (paths.KIT / name).read_text("utf-8"))[1:]
    assert all("--hash=sha256:" in block for block in blocks)
    requirements = [Requirement(block.split(" \\\n")[0]) for block in blocks]
    environment = {"python_version": python.rpartition(".")[0], "python_full_version": python, "sys_platform": "linux"}
    chosen = [item for item in requirements if not item.marker or item.marker.evaluate(environment)]
    return {canonicalize_name(item.name): str(item.specifier).removeprefix("==") for item in chosen}


def test_every_requirement_says_why():
    text = (paths.KIT / "pyproject.toml").read_text("utf-8").partition("[project]")[2].partition("[tool.")[0]
    required = [line for line in text.splitlines() if re.match(r'    "[A-Za-z0-9-]+(\[[a-z,]+\])?[>=<]', line)]
    assert len(required) > 40
    assert [line for line in required if "# " not in line] == []


def test_the_instrument_needs_few_packages_and_none_of_the_site():
    assert len(names(wanted())) == 9
    # Servers need these, too.
    assert names(wanted()) & names(wanted("servers")) == {"h11", "packaging"}


def test_no_other_extra_has_what_servers_have_nor_they_the_other_driver_or_a_dead_server():
    servers = names(wanted("servers"))
    assert names(wanted("psycopg3", "flup")) == {"psycopg", "flup-py3"}
    others = set(EXTRAS) - {"servers", "dev"}
    assert others == {"completion", "debug", "docs", "flup", "hosts", "psycopg3"}
    assert "psycopg2-binary" in servers and not servers & names(wanted(*others))


# Versions with published holes.
HOLES = ("gunicorn==26.0.0", "granian==2.7.3")


@pytest.mark.parametrize("hole", HOLES)
def test_no_version_with_a_published_hole_is_taken(hole):
    allowed = {requirement.name: requirement.specifier for requirement in wanted("servers")}
    name, _, version = hole.partition("==")
    assert not allowed[name].contains(version)


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_file_pins_what_a_host_installs(python):
    pinned = pins("requirements.lock", python)
    for needed in wanted("servers"):
        version = pinned.get(canonicalize_name(needed.name))
        assert version and needed.specifier.contains(version), f"run `make lock`: {needed} is pinned as {version}"


def test_the_lock_file_has_no_tool_of_development_or_instrument():
    others = names([*wanted(), *wanted(*EXTRAS)]) - names(wanted("servers"))
    assert {"pytest", "ruff", "django-debug-toolbar", "flup-py3", "jinja2"} <= others
    assert not others & pins("requirements.lock", PYTHONS[0]).keys()


def test_mod_wsgi_is_pinned_as_the_makefile_says():
    match = re.search(r"^MODWSGI := (.+)$", (paths.KIT / "Makefile").read_text("utf-8"), re.M)
    (version,) = pins("requirements-modwsgi.lock", PYTHONS[0]).values()
    assert Requirement(match[1]).specifier.contains(version)


def test_both_lock_files_are_checked():
    makefile = (paths.KIT / "Makefile").read_text("utf-8")
    rule = makefile.partition("\nlock-check:")[2].partition("\n\n")[0]
    assert re.findall(r"cmp (\S+)", rule) == ["requirements.lock", "requirements-modwsgi.lock"]


def test_an_audit_reads_both_lock_files_and_fails_for_what_it_cannot_look_up(tmp_path):
    command = ["make", "--dry-run", "audit", f"VENV={tmp_path}"]
    done = subprocess.run(command, cwd=paths.KIT, capture_output=True, text=True, check=True)
    audit = done.stdout.partition("pip-audit ")[2]
    assert re.findall(r"-r (\S+)", audit) == ["requirements.lock", "requirements-modwsgi.lock"]
    assert "--strict" in audit
