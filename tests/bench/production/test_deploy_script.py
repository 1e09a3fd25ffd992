"""What the rendered benchapp-deploy does with its units, with stand-ins for what it asks of the host."""

from __future__ import annotations

import http.server
import re
import subprocess
import threading

import pytest

from bench.production import host as one_host
from tests.cases import production

# The processes below the main one, as often as they are asked for: before the reload, and then each second.
PGREP = '#!/bin/sh\nhead -n 1 seen | tr " " "\\n"\nsed -i 1d seen\n'
SYSTEMCTL = '#!/bin/sh\necho "$*" >> said\n'
PKILL = '#!/bin/sh\n[ "$*" = "-f ^benchapp-wsgi.*/etc/benchapp/httpd.conf" ] && touch killed\n'


@pytest.fixture
def script(tmp_path):
    """The rendered script of a stack, its functions alone."""

    def render(stack: str, **changes: str) -> str:
        one_host.write(production(stack, **changes), tmp_path / stack)
        return (tmp_path / stack / "benchapp-deploy").read_text().partition("\n[ $# -gt 0 ]")[0]

    return render


@pytest.mark.parametrize(
    ("stack", "seen", "left"),
    [
        # One of multiprocessing's own, 9, stays.
        ("granian", ["1 2 3 4 9", "1 2 3 4 9 5", "3 4 5 6 9", "5 6 7 8 9", "never"], ["never"]),
        # Two routers.
        ("uwsgi", ["1 2 3 4 8 9", "4 5 6 7 8 9", "5 6 7 8 9 10", "never"], ["never"]),
        # Two that serve clients.
        ("apache-modwsgi", ["1 2 3 4 8 9", "4 8 9 5", "8 9 5 6", "never"], ["never"]),
    ],
)
def test_a_release_is_asked_when_the_processes_before_it_have_ended(script, tmp_path, stack, seen, left):
    text = script(stack)
    for name, body in (("pgrep", PGREP), ("systemctl", SYSTEMCTL), ("pkill", PKILL), ("sleep", "#!/bin/sh\n")):
        (tmp_path / name).write_text(body)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "seen").write_text("\n".join(seen) + "\n")
    (call,) = re.findall(r"^    (take_over .*) \|\| return$", text, re.MULTILINE)
    path = "export PATH=$PWD:$PATH; packages=same"
    done = subprocess.run(["sh", "-uc", f"{text}\n{path}\n{call}"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)
    assert ("reload" in (tmp_path / "said").read_text()) == (stack != "apache-modwsgi")
    assert (tmp_path / "killed").exists() == (stack == "apache-modwsgi")
    assert (tmp_path / "seen").read_text().split() == left


@pytest.mark.parametrize(
    ("changes", "stops"), [({}, True), ({"listener": "behind"}, True), ({"listener": "plain"}, False)]
)
def test_a_warning_of_djangos_check_for_production_is_seen(script, changes, stops):
    text = script("nginx-gunicorn", **changes)
    assert ("manage check --deploy --fail-level WARNING\n" in text) == stops


def test_the_line_of_a_failed_check_is_what_it_found(script):
    found = r"?: (security.W004) no HSTS\n\nSystem check identified 1 issue (0 silenced).\n"
    call = f"step check sh -c 'printf \"{found}\"; exit 1'"
    done = subprocess.run(["sh", "-uc", f"{script('gunicorn')}\n{call}"], capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("benchapp-deploy: check: ?: (security.W004) no HSTS\n", 1)


@pytest.fixture
def late():
    """The address of a web server whose site is not there yet, as it says twice, and the statuses that it gave."""
    given = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            given.append(502 if len(given) < 2 else 200)
            self.send_response(given[-1])
            if given[-1] == 502:
                self.send_header("Retry-After", "30")
            self.end_headers()

        def log_message(self, *_):
            """Quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}", given
        server.shutdown()


def test_a_release_is_asked_again_whatever_the_page_of_a_failure_asks_of_visitors(script, late):
    address, given = late
    (line,) = (line for line in script("gunicorn").splitlines() if "/readyz" in line)
    done = subprocess.run(["sh", "-c", re.sub(r"127\.0\.0\.1:\d+", address, line)], capture_output=True)
    assert (done.returncode, given) == (0, [502, 502, 200])
