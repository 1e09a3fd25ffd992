"""The wheel, installed outside of the clone: the whole way of the tutorials, for each kind of caller."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from bench import paths, programs
from tests.deploy import tutorials
from tests.skips import needs

pytestmark = [pytest.mark.servers, pytest.mark.long]

# Servers are installed meanwhile.
UP_S, COMMAND_S = 600, 600


@dataclass(frozen=True)
class Installed:
    """The tool in a separate environment, called by a user whose home, state and project are in a folder.

    prefix  stands before a command, and makes it run as that user
    """

    folder: Path
    prefix: tuple[str, ...] = ()

    @property
    def tool(self) -> Path:
        return self.folder / "tool"

    @property
    def package(self) -> Path:
        return next(self.tool.glob("lib/python*/site-packages/bench"))

    @property
    def state(self) -> Path:
        return self.folder / "home" / ".local" / "state" / "benchapp"

    @property
    def project(self) -> Path:
        return self.folder / "home" / "mysite"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a shell after a log-in; of the clone's environment it has uv and nothing else."""
        kept = {
            name: value for name, value in os.environ.items() if re.match("PIP_|UV_|SSL_|LANG|.*_proxy$", name, re.I)
        }
        path = f"{self.folder}/bin:/usr/local/bin:/usr/bin:/bin"
        home = str(self.folder / "home")
        return {**kept, "PATH": path, "HOME": home, "UV_CACHE_DIR": f"{home}/cache"}

    def start(self, *words: str, cwd: Path) -> subprocess.Popen[str]:
        """A command of the tool, started in a folder."""
        argv = [*self.prefix, str(self.tool / "bin" / "benchapp"), *words]
        return subprocess.Popen(
            argv, cwd=cwd, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, *words: str, cwd: Path | None = None) -> str:
        """The output of a command of the tool in a folder, by default the project's; the command must succeed."""
        with self.start(*words, cwd=cwd or self.project) as process:
            output, _ = process.communicate(timeout=COMMAND_S)
        assert process.returncode == 0, output
        return output

    def follow(self, tutorial: str, cwd: Path, page: str = "/") -> list[str]:
        """Run the commands of a tutorial in a folder, and visit a page of what they serve; returns their names."""
        done = tutorials.commands(tutorial)
        for words in done:
            if words[0] == "up":
                self.visit(*words, cwd=cwd, page=page)
            else:
                self.run(*words, cwd=cwd)
        return [words[0] for words in done]

    def visit(self, *words: str, cwd: Path | None = None, page: str = "/") -> str:
        """A page of what `up` serves, which is stopped as by Ctrl-C and then leaves nothing running."""
        with self.start(*words, cwd=cwd or self.project) as process:
            try:
                url = self._url(process)
                with urllib.request.urlopen(f"{url}{page}", timeout=60) as response:
                    text = response.read().decode()
            finally:
                process.send_signal(signal.SIGINT)
                output, _ = process.communicate(timeout=UP_S)
        assert process.returncode in (0, 130), output
        return text

    def _url(self, process: subprocess.Popen[str]) -> str:
        lines, deadline = [], time.monotonic() + UP_S
        for line in process.stdout or ():
            lines.append(line)
            if match := re.search(r"http://127\.0\.0\.1:\d+", line):
                return match[0]
            assert time.monotonic() < deadline, lines
        raise AssertionError("".join(lines))


def uv(*words: str) -> None:
    subprocess.run([str(programs.find(["uv"])), *words, "--quiet"], check=True, capture_output=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this clone."""
    needs("uv")
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "--wheel", "--out-dir", str(folder), str(paths.KIT))
    return next(folder.glob("*.whl"))


def installed(folder: Path, wheel: Path, python: str, prefix: tuple[str, ...] = ()) -> Installed:
    """The tool, and a project as startproject makes it, with an environment that has Django and nothing else, and with
    what a host needs: a folder of static files and a list of packages."""
    installation = Installed(folder, prefix)
    for name in ("bin", "home", "home/mysite"):
        (folder / name).mkdir()
    (folder / "bin" / "uv").symlink_to(str(programs.find(["uv"])))
    subprocess.run(
        [sys.executable, "-m", "django", "startproject", "mysite", installation.project], check=True, cwd=folder
    )
    with (installation.project / "mysite" / "settings.py").open("a") as settings:
        settings.write('STATIC_ROOT = BASE_DIR / "static"\n')
    (installation.project / "requirements.txt").write_text("django\n")
    for venv, packages in ((installation.tool, [str(wheel)]), (installation.project / ".venv", ["Django>=5.2,<5.3"])):
        uv("venv", "--python", python, str(venv))
        # As pip does; nobody may write beside these packages, and each process would compile them again.
        uv("pip", "install", "--compile-bytecode", "--python", str(venv / "bin" / "python"), *packages)
    return installation


@pytest.fixture(scope="module")
def caller(wheel) -> Iterator[Installed]:
    """An ordinary user, for whom somebody else has installed the tool."""
    folder = Path(tempfile.mkdtemp(prefix="benchapp-wheel-"))
    folder.chmod(0o755)
    user, python, prefix = pwd.getpwuid(os.geteuid()), sys.executable, ()
    if os.geteuid() == 0:
        # Root's own Python may be in a closed home.
        user, python = pwd.getpwnam("nobody"), "/usr/bin/python3"
        prefix = ("setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups", "--")
    installation = installed(folder, wheel, python, prefix)
    for path in (folder / "home", *(folder / "home").rglob("*")):
        if os.geteuid() == 0:
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
    package = (installation.package, *installation.package.rglob("*"))
    for path in package:
        path.chmod(path.stat().st_mode & ~0o222)
    yield installation
    for path in package:
        path.chmod(path.stat().st_mode | 0o200)
    shutil.rmtree(folder)


def files_of(package: Path) -> dict[str, float]:
    return {str(path): path.stat().st_mtime for path in package.rglob("*")}


def test_an_ordinary_user_goes_from_doctor_to_a_host(caller):
    before = files_of(caller.package)
    # The core is enough to look at a project and to write files for it.
    listed = caller.run("list", "--json")
    assert json.loads(listed[listed.index("{") :])["fits"]["gunicorn"]["none"] is None
    assert "settings mysite.settings" in caller.run("doctor")
    caller.run("render", "nginx-gunicorn", "--values", "production", "--output", "rendered")
    assert list((caller.project / "rendered").rglob("nginx.conf"))
    assert not (caller.state / "servers").exists()
    # Servers are installed now.
    done = caller.follow("choose-a-stack", caller.project, "/admin/login/")
    assert done == ["doctor", "up", "verify", "run", "report", "render"]
    assert (caller.project / "results" / "mine" / "report.html").stat().st_size > 10_000
    added = {"rendered", "results", "gunicorn-files"}
    there = {".venv", "manage.py", "mysite", "requirements.txt"}
    assert {path.name for path in caller.project.iterdir()} == there | added
    assert (caller.project / "gunicorn-files" / "INSTALL.md").is_file()
    follow_to_a_host(caller)
    assert files_of(caller.package) == before


def follow_to_a_host(caller: Installed) -> None:
    """The tutorial about a server begins in the folder that the one about a stack leaves."""
    text = tutorials.text("put-it-on-a-server")
    (values,) = re.findall(r"^```toml\n(.*?)^```", text, re.M | re.S)
    (caller.project / "mysite.toml").write_text(values)
    assert caller.follow("put-it-on-a-server", caller.project) == ["render"]
    note = (caller.project / "production" / "INSTALL.md").read_text("utf-8")
    # The commands on the host, and the paths and names that they need, are those of the note.
    for command in (
        "benchapp-install",
        "benchapp-deploy REPOSITORY",
        "benchapp-manage createsuperuser",
        "benchapp-rollback",
        "/.health",
        "BENCHAPP_DATABASE_URL",
    ):
        assert command in text and command in note


def test_without_a_project_the_kits_own_site_is_served_and_measured(caller):
    folder = caller.folder / "home"
    before = files_of(caller.package)
    assert caller.follow("first-comparison", folder) == ["list", "up", "run", "report", "run"]
    assert (caller.state / "data" / "benchapp.sqlite3").stat().st_size > 1_000_000
    assert (folder / "results" / "first" / "report.html").is_file()
    assert files_of(caller.package) == before


SLOWER = """
import time

from django.http import HttpResponse
from django.urls import path


def home(request):
    time.sleep({seconds})
    return HttpResponse("<html><body>Home</body></html>")


urlpatterns = [path("", home)]
"""


def test_the_action_fails_for_a_commit_that_is_slower_and_writes_a_summary(caller):
    folder = caller.folder / "runner"
    shutil.copytree(caller.project, folder / "mysite", ignore=shutil.ignore_patterns("results", "rendered"))
    # The machine is busy with other tests.
    tool = folder / "benchapp" / "bin" / "benchapp"
    tool.parent.mkdir(parents=True)
    added = " ".join([*tutorials.FEW, *tutorials.GUARDS])
    tool.write_text(f'#!/bin/sh\ntest "$1" != run || set -- "$@" {added}\nexec {caller.tool}/bin/benchapp "$@"\n')
    tool.chmod(0o755)
    git = ["git", "-c", "user.name=tests", "-c", "user.email=tests@example.org"]
    (folder / "mysite" / ".gitignore").write_text(".venv/\n")
    subprocess.run([*git, "init", "--quiet"], cwd=folder / "mysite", check=True)
    for seconds in (0, 0.05):
        (folder / "mysite" / "mysite" / "urls.py").write_text(SLOWER.format(seconds=seconds))
        subprocess.run([*git, "add", "."], cwd=folder / "mysite", check=True)
        subprocess.run([*git, "commit", "--quiet", "--message=Change"], cwd=folder / "mysite", check=True)

    action = yaml.safe_load((paths.KIT / "action.yml").read_text("utf-8"))
    inputs = {name: of.get("default") for name, of in action["inputs"].items()}
    inputs |= {"base": "HEAD~1", "project": str(folder / "mysite"), "max-time": "3m"}
    step = action["runs"]["steps"][-1]
    environment = {
        **caller.environment,
        "RUNNER_TEMP": str(folder),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "HOME": str(folder),
    }
    for name, value in step["env"].items():
        environment[name] = inputs[re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)[1]]
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=inputs["project"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "slower" in (folder / "summary.md").read_text()


def test_root_in_a_home_that_servers_may_not_enter_has_them_run_as_an_ordinary_user(wheel):
    if os.geteuid() != 0:
        pytest.skip("not root")
    folder = Path(tempfile.mkdtemp(prefix="benchapp-wheel-"))
    try:
        assert folder.stat().st_mode & 0o777 == 0o700
        installation = installed(folder, wheel, sys.executable)
        (installation.project / "mysite" / "urls.py").write_text(
            "import getpass\nfrom django.http import HttpResponse\nfrom django.urls import path\n"
            "urlpatterns = [path('', lambda request: HttpResponse(getpass.getuser()))]\n"
        )
        assert installation.visit("up", "nginx-gunicorn") == "nobody"
    finally:
        shutil.rmtree(folder)
