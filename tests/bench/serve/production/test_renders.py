"""Whole renders as goldens: three projects for one host, for Compose and for Kubernetes, and one on several hosts.

With BENCH_UPDATE_GOLDEN in the environment each golden is written again, for a person to look at the difference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import paths, programs
from bench.serve.deployment.case import Case
from bench.serve.production import containers, one_host, several_hosts
from bench.serve.project.opened import UnderTest, open_project
from tests import projects
from tests.bench.serve.production.test_containers import validate_manifests
from tests.bench.serve.production.test_several_hosts import hosts
from tests.cases import kit, production

# The other projects are inspected by programs.
pytestmark = pytest.mark.servers

GOLDENS = paths.KIT / "tests" / "golden" / "renders"
UPDATE = "BENCH_UPDATE_GOLDEN" in os.environ
# Folders with files that a render copies: a golden names the copied file, which has its own history.
COPIED = (
    *("benchapp_overlay", "benchapp/caching", "benchapp/login_limit", "benchapp/serving"),
    *("deploy/production", "deploy/servers", "deploy/services", "deploy/stacks", "deploy/layers"),
)
# Versions change with the lock file and with the Python of this machine, a digest with every file, and the word for a
# site in a shared cache with the name of the project's folder.
CHANGES = {
    r"(?m)^(    --hash=.*\n)+": "",
    r"(?m)^([\w.-]+)==\S+": r"\1==VERSION",
    r"python:3\.\d+-slim": "python:VERSION-slim",
    r"(?m)^[0-9a-f]{64}$": "DIGEST",
    r"(?m)\b[0-9a-f]{12}(?=:page:|$)": "SITE",
}
UPLOADS = """
import os
SECRET_KEY = os.environ["SHOP_KEY"]
MEDIA_URL, MEDIA_ROOT = "/media/", BASE_DIR / "media"
"""
WORK = """
[tool.benchapp.workers.queue]
command = "manage.py work --batch"

[tool.benchapp.workers.beat]
command = "celery -A shop beat"
single = true

[tool.benchapp.jobs.digest]
command = "manage.py digest"
schedule = "04:30"

[tool.benchapp.jobs.often]
command = "python tools/often.py"
schedule = "*:0/15"
"""
# Project -> its stack, its layer and its size.
SERVED = {
    "kit": ("nginx-gunicorn", "fragments", "silver"),
    "startproject": ("apache-modwsgi", "none", "unlimited"),
    "uploads": ("nginx-uvicorn", "varnish", "silver"),
}
HOSTS = "hosts"
# On several hosts: the web server has a cache on another one.
ON_HOSTS = ("nginx-uwsgi", "nginx-memcached", "unlimited")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], UnderTest]]:
    """A function for a project by its name, inspected once."""
    folder = tmp_path_factory.mktemp("projects")
    opened: dict[str, UnderTest] = {}

    def find(name: str) -> UnderTest:
        if name not in opened:
            opened[name] = kit() if name == "kit" else _opened(folder / name / "shop", tmp_path_factory)
        return opened[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "STATE", folder / "var")
        yield find


def _opened(folder: Path, factory: pytest.TempPathFactory) -> UnderTest:
    """A project as `django-admin startproject` makes it, or one with uploads, a worker, a job and a secret."""
    folder.parent.mkdir()
    if folder.parent.name == "startproject":
        projects.write(folder, factory, "", '[project]\nname = "shop"\ndependencies = ["Django"]\n')
    else:
        projects.write(folder, factory, UPLOADS, projects.DESCRIPTION + WORK)
        (folder / ".env").write_text("SHOP_KEY=a-secret\n")
    return open_project(folder)


def write(case: Case, form: str, folder: Path) -> None:
    """Write the files of a form."""
    if form == HOSTS:
        several_hosts.write(case, hosts(), folder)
    elif form == "systemd":
        one_host.write(case, folder)
    else:
        containers.write(case, folder, form)


def text_of(folder: Path) -> str:
    """Every file below a folder after a heading with its path."""
    originals: dict[str, str] = {}
    for name in COPIED:
        for path in sorted((paths.KIT / name).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                originals.setdefault(path.read_text("utf-8"), str(path.relative_to(paths.KIT)))

    parts = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        text = path.read_text("utf-8")
        heading = f"==> {path.relative_to(folder)} <=="
        if path.stat().st_mode & 0o100:
            heading += " can be executed"
        if text and text in originals:
            text = f"A copy of {originals[text]}\n"
        for pattern, word in CHANGES.items():
            text = re.sub(pattern, word, text)
        parts.append(f"{heading}\n{text}")
    return "\n".join(parts)


FORMS = [*((name, form) for name in SERVED for form in ("systemd", *containers.FORMS)), ("kit", HOSTS)]


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_a_render_is_its_golden(name, form, project, tmp_path, monkeypatch):
    stack, layer, size = ON_HOSTS if form == HOSTS else SERVED[name]
    of = project(name)
    # The facts of a project are read before: no render depends on what is installed here.
    assert of.facts
    monkeypatch.setattr(programs, "find", lambda *_: None)
    monkeypatch.setattr(programs, "module", lambda *_: None)
    write(production(stack, layer, of, size), form, tmp_path / "out")
    text = text_of(tmp_path / "out")
    golden = GOLDENS / f"{name}-{form}.txt"
    if UPDATE:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8"), "write it again: BENCH_UPDATE_GOLDEN=1"
    if form == "kubernetes":
        validate_manifests(tmp_path / "out")


def test_no_golden_is_left_over():
    assert {path.name for path in GOLDENS.iterdir()} <= {f"{name}-{form}.txt" for name, form in FORMS}
