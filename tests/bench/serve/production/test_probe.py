"""The probe of a container's health."""

from __future__ import annotations

import contextlib
import http.server
import os
import socket
import subprocess
import sys
import threading

from bench.serve.production import containers
from tests.cases import for_files
from tests.skips import needs


class Site(http.server.BaseHTTPRequestHandler):
    """Responds by the name in the request."""

    def do_GET(self):
        self.send_response(200 if self.headers["Host"] == "example.org" else 400)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_the_probe_tells_what_is_well(tmp_path):
    containers.write(for_files("gunicorn", values="production"), tmp_path / "out", "compose")
    probe = tmp_path / "out" / "benchapp-probe"
    assert os.access(probe, os.X_OK)

    def exits(*words: str) -> int:
        return subprocess.run([sys.executable, str(probe), *words], capture_output=True).returncode

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}"
        assert exits(address) == 0
        assert exits(address, "http://example.org/healthz") == 0
        assert exits(address, "http://other.example/healthz") == 1
        assert exits(address, "https://example.org/healthz") == 1
        server.shutdown()
    assert exits(address) == 1
    with socket.socket(socket.AF_UNIX) as listener:
        path = f"{os.path.relpath(tmp_path)}/s" if len(str(tmp_path)) > 90 else f"{tmp_path}/s"
        assert exits(path if path.startswith("/") else str(tmp_path / "s")) == 1
        listener.bind(path)
        listener.listen()
        assert exits(str(tmp_path / "s")) == 0


def test_a_busy_server_is_alive_and_an_absent_one_is_not(tmp_path):
    needs("perl")
    containers.write(for_files("gunicorn", values="production"), tmp_path / "out", "compose")

    def exits(place: str) -> int:
        return subprocess.run([tmp_path / "out" / "benchapp-alive", place], capture_output=True).returncode

    with contextlib.ExitStack() as opened:
        for family in (socket.AF_UNIX, socket.AF_INET):
            listener = opened.enter_context(socket.socket(family))
            listener.bind(os.path.relpath(tmp_path / "s") if family == socket.AF_UNIX else ("127.0.0.1", 0))
            place = str(tmp_path / "s")
            if family == socket.AF_INET:
                place = f"127.0.0.1:{listener.getsockname()[1]}"
            assert exits(place) == 1
            listener.listen(0)
            assert exits(place) == 0
            # More than it takes: others wait in the kernel, and the next one is not even told so.
            for _ in range(3):
                waiting = opened.enter_context(socket.socket(family))
                waiting.setblocking(False)
                waiting.connect_ex(listener.getsockname())
            assert exits(place) == 0
