"""Files for production are for a host whose Python can have the project's packages, or they are refused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bench.errors import BenchError
from bench.serve.catalog import catalog
from bench.serve.production import target


@pytest.fixture
def chosen(tmp_path):
    """Return the release that is chosen for a project of this Python, whose packages need these versions."""

    def choose(own, packages, changes=None, requirements="Django\n", pyproject=""):
        sites = tmp_path / "site-packages"
        for name, (python, needs) in packages.items():
            folder = sites / f"{name}-6.0.4.dist-info"
            folder.mkdir(parents=True)
            lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 6.0.4", f"Requires-Python: {python}"]
            lines += [f"Requires-Dist: {need}" for need in needs]
            (folder / "METADATA").write_text("\n".join(lines) + "\n")
        (tmp_path / "requirements.txt").write_text(requirements)
        (tmp_path / "base.txt").write_text("wanted\n")
        (tmp_path / "pyproject.toml").write_text(pyproject)
        project = SimpleNamespace(
            recorded="x",
            folder=tmp_path,
            facts=SimpleNamespace(python=own),
            sites=(str(sites),),
        )
        values = catalog.read().value_set("production").changed(changes or {})
        chosen_values, note = target.for_project(project, values)
        assert bool(note) == (chosen_values != values)
        return chosen_values.names["debian"]

    return choose


NEW, OLD = {"Django": (">=3.12", [])}, {"Django": (">=3.10", [])}


@pytest.mark.parametrize(
    ("own", "packages", "more", "release"),
    [
        ("3.11.2", OLD, {}, 12),
        ("3.12.1", NEW, {}, 13),
        # It was measured by a newer one than Debian 12 has.
        ("3.13.0", OLD, {}, 13),
        ("3.14.0", NEW, {}, 13),
        ("3.12.1", OLD, {"changes": {"debian": 12}}, 12),
        ("3.11.2", OLD, {"pyproject": '[project]\nrequires-python = ">=3.13"\n'}, 13),
        # A package that another one needs, or that an included list names; but none that is only there.
        ("3.11.2", {"Django": (">=3.10", ["asgiref"]), "asgiref": (">=3.12", [])}, {}, 13),
        ("3.11.2", {**OLD, "wanted": (">=3.12", [])}, {"requirements": "-r base.txt\nDjango"}, 13),
        ("3.11.2", {**OLD, "tool": (">=3.14", [])}, {}, 12),
        ("3.11.2", {**OLD, "tool": (">=3.14", [])}, {"requirements": 'Django\ntool; sys_platform == "win32"'}, 12),
    ],
)
def test_its_python_is_that_of_the_project(chosen, own, packages, more, release):
    assert chosen(own, packages, **more) == release


@pytest.mark.parametrize(
    ("packages", "changes", "message"),
    [
        (
            NEW,
            {"debian": 12},
            r"--set debian=12: django 6.0.4 needs Python >=3.12, and Debian 12 .* use --set debian=13",
        ),
        (
            {"Django": (">=3.14", [])},
            {},
            r"needs Python >=3.14, and Debian 13 \(trixie\) has 3.13; use --format compose",
        ),
    ],
)
def test_what_cannot_be_installed_there_is_refused_in_one_line(chosen, packages, changes, message):
    with pytest.raises(BenchError, match=message) as refusal:
        chosen("3.12.1", packages, changes)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("tag", "requirements", "named"),
    [
        ("cp313-cp313-linux_x86_64", "Psycopg2\n", True),
        ("cp313-cp313-linux_x86_64", "Psycopg2\n--no-binary psycopg2\n", False),
        ("cp313-cp313-linux_x86_64", "Psycopg2\n--no-binary=other,psycopg2\n", False),
        ("cp313-cp313-linux_x86_64", "Django\n", False),
        ("cp313-cp313-manylinux_2_17_x86_64", "Psycopg2\n", False),
        ("py3-none-any", "Psycopg2\n", False),
    ],
)
def test_a_package_without_a_wheel_is_reported_before_a_deploy_refuses_it(tmp_path, tag, requirements, named):
    folder = tmp_path / "site-packages" / "psycopg2-2.9.11.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: psycopg2\nVersion: 2.9.11\n")
    (folder / "WHEEL").write_text(f"Wheel-Version: 1.0\nTag: {tag}\n")
    (tmp_path / "requirements.txt").write_text(requirements)
    project = SimpleNamespace(recorded="x", folder=tmp_path, sites=(str(folder.parent),))
    note = target.compiled_here(project)
    assert bool(note) == named and ("--no-binary psycopg2" in note) == named
