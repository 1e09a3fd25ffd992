"""The rendered benchapp-deploy and its units, with stand-ins for the commands of the host."""

from __future__ import annotations

import http.server
import re
import signal
import subprocess
import threading

import psutil
import pytest

from bench.serve.production import one_host
from bench.serve.project.opened import open_project
from tests import projects
from tests.cases import production
from tests.projects import own_var
from tests.waiting import until

__all__ = ["own_var"]

# The processes below the main one, as often as they are listed: before the reload, and then each second.
PGREP = '#!/bin/sh\nhead -n 1 seen | tr " " "\\n"\nsed -i 1d seen\n'
SYSTEMCTL = '#!/bin/sh\necho "$*" >> commands\n'


@pytest.fixture
def script(tmp_path):
    """The rendered script of a stack, its functions only."""

    def render(stack: str, **changes: str) -> str:
        one_host.write(production(stack, **changes), tmp_path / stack)
        return (tmp_path / stack / "benchapp-deploy").read_text().partition("\n[ $# -gt 0 ]")[0]

    return render


def test_if_no_unit_stands_in_a_release_is_requested_when_the_processes_before_it_have_ended(script, tmp_path):
    """uWSGI's routers, 8 and 9, stay."""
    text = script("uwsgi")
    for name, body in (("pgrep", PGREP), ("systemctl", SYSTEMCTL), ("sleep", "#!/bin/sh\n")):
        (tmp_path / name).write_text(body)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "seen").write_text("1 2 3 4 8 9\n4 5 6 7 8 9\n5 6 7 8 9 10\nnever\n")
    (call,) = re.findall(r"^    (take_over .*) \|\| return$", text, re.MULTILINE)
    path = "export PATH=$PWD:$PATH; packages=same"
    done = subprocess.run(["bash", "-uc", f"{text}\n{path}\n{call}"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)
    assert "reload" in (tmp_path / "commands").read_text()
    assert (tmp_path / "seen").read_text().split() == ["never"]


@pytest.mark.parametrize(
    ("fails", "commands"),
    [
        ("", ["restart u-standin", "restart u", "stop u-standin"]),
        # The old processes go on.
        ("u-standin", ["restart u-standin"]),
        # So does the other unit, until the release before serves again.
        ("u", ["restart u-standin", "restart u"]),
    ],
)
def test_the_old_processes_end_when_others_serve(script, tmp_path, fails, commands):
    fails = f'[ "$*" != "restart {fails}" ]\n'
    (tmp_path / "systemctl").write_text('#!/bin/sh\n[ "$1" = is-active ] || echo "$*" >> commands\n' + fails)
    (tmp_path / "systemctl").chmod(0o755)
    call = f"export PATH=$PWD:$PATH; {script('nginx-gunicorn')}\nPATH=$PWD:$PATH; take_over u"
    done = subprocess.run(["bash", "-uc", call], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode == 0) == (fails == '[ "$*" != "restart " ]\n'), done.stderr
    assert (tmp_path / "commands").read_text().splitlines() == commands


def test_the_folder_of_a_project_in_its_repository_becomes_the_release(tmp_path, tmp_path_factory, own_var):
    root = tmp_path / "repository"
    projects.write(root / "back" / "shop", tmp_path_factory, "", "")
    (root / "requirements.txt").write_text("Django\n")
    (root / "README.md").write_text("x")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=root, check=True)
    case = production("gunicorn", project=open_project(root / "back" / "shop"))
    one_host.write(case, tmp_path / "out")
    assert "`back/shop`" in (tmp_path / "out" / "INSTALL.md").read_text()
    text = (tmp_path / "out" / "benchapp-deploy").read_text().partition("\n[ $# -gt 0 ]")[0]
    done = subprocess.run(
        ["bash", "-uc", f"{text}\nnew={root}; rm -rf {root}/.git; take_folder"], capture_output=True, text=True
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert sorted(path.name for path in root.iterdir()) == ["manage.py", "requirements.txt", "shop"]


@pytest.mark.parametrize(
    ("changes", "stops"), [({}, True), ({"listener": "behind"}, True), ({"listener": "plain"}, False)]
)
def test_a_warning_of_djangos_check_for_production_is_seen(script, changes, stops):
    text = script("nginx-gunicorn", **changes)
    assert ("manage check --deploy --fail-level WARNING\n" in text) == stops


def test_the_line_of_a_failed_check_is_what_it_found(script):
    message = r"?: (security.W004) no HSTS\n\nSystem check identified 1 issue (0 silenced).\n"
    call = f"step check sh -c 'printf \"{message}\"; exit 1'"
    done = subprocess.run(["bash", "-uc", f"{script('gunicorn')}\n{call}"], capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("benchapp-deploy: check: ?: (security.W004) no HSTS\n", 1)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_step_and_all_that_it_has_started(script, tmp_path, sent):
    """Also a step that hangs in a child's child, and at once."""
    text = f"{script('gunicorn')}\nhome=$PWD new=$PWD/new current=$PWD/current\nsystemctl() {{ :; }}"
    hangs = "hangs() { sh -c 'echo $$ > child; sleep 600; true'; }"
    call = f"{text}\n{hangs}\ntrap undo EXIT\ntrap 'exit 1' INT TERM\nmkdir $new\nstep it hangs"
    with subprocess.Popen(["bash", "-uc", call], cwd=tmp_path) as deploy:
        until((tmp_path / "child").exists, "the step has begun")
        deploy.send_signal(sent)
        assert deploy.wait(10) == 1
    child = int((tmp_path / "child").read_text())
    until(lambda: not psutil.pid_exists(child), "nothing of the step is left")
    assert not (tmp_path / "new").exists()


def test_a_step_has_a_limit(script):
    call = "limit_s=1\nstep 'its pages' sleep 600"
    done = subprocess.run(["bash", "-uc", f"{script('gunicorn')}\n{call}"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (
        1,
        "benchapp-deploy: its pages: not done after 1 s (BENCHAPP_STEP_LIMIT)\n",
    )


@pytest.fixture
def late():
    """The address of a web server whose site is not there yet, as it says twice, and the statuses that it gave."""
    given = []

    class Response(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            given.append(502 if len(given) < 2 else 200)
            self.send_response(given[-1])
            if given[-1] == 502:
                self.send_header("Retry-After", "30")
            self.end_headers()

        def log_message(self, *_):
            """Quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Response) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}", given
        server.shutdown()


def test_a_release_is_requested_again_whatever_the_page_of_a_failure_wants_of_visitors(script, late):
    address, given = late
    (line,) = (line for line in script("gunicorn").splitlines() if "/readyz" in line)
    done = subprocess.run(["sh", "-c", re.sub(r"127\.0\.0\.1:\d+", address, line)], capture_output=True)
    assert (done.returncode, given) == (0, [502, 502, 200])
