"""A request has one id in the web server's log, in the application and in the response; logs are JSON if set so."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.running import Up, get, runnable
from tests.waiting import until

pytestmark = pytest.mark.servers

OWN = "3f2a9c0e-1111-4c5d-9aaa-0123456789ab"
ODD = 'a"b\\c {x}'
# A stack for each web server, each protocol to the application, and one without a web server.
STACKS = ["nginx-gunicorn", "caddy-gunicorn", "gunicorn"]
OTHERS = ["nginx-uwsgi", "apache-modwsgi", "granian", "haproxy-gunicorn", "nginx-granian", "gunicorn-uvicorn"]
# They write to the standard output, which systemd collects, or to standard error.
WITHOUT_FILE = ("gunicorn", "granian", "haproxy-gunicorn", "gunicorn-uvicorn")


@pytest.fixture
def log() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="benchapp-log-", dir="/tmp"))
    folder.chmod(0o777)
    yield folder / "access.log"
    shutil.rmtree(folder)


def entries(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def clients(entry: dict) -> set[str]:
    """The addresses that an entry has of the client; Caddy writes its own form."""
    request = entry.get("request", entry)
    return {request[name] for name in ("client", "client_ip", "remote_ip") if name in request}


@pytest.mark.parametrize("stack", [*STACKS, *(pytest.param(name, marks=pytest.mark.matrix) for name in OTHERS)])
def test_one_id_from_the_client_to_the_logs(stack, site_url, log):
    runnable(stack)
    options = ("--set", f"access_log={log}", "--set", "log_format=json", "--set", "log_addresses=masked")
    with Up(stack, "--database", site_url, *options, "--env", "BENCHAPP_REQUEST_IDS=1") as up:
        kept = get(f"{up.url}login/?kept", headers={"X-Request-Id": OWN, "User-Agent": ODD})
        assert kept.headers.get_list("X-Request-Id") == [OWN]
        for given in ("short", "has spaces in it", "x" * 200, 'quote"quote'):
            ids = get(f"{up.url}login/?made", headers={"X-Request-Id": given}).headers.get_list("X-Request-Id")
            assert len(ids) == 1
            assert ids[0] != given and re.fullmatch("[A-Za-z0-9@_.-]{8,64}", ids[0]), given
        static = get(f"{up.url}static/small.txt").headers.get_list("X-Request-Id")
        missing = get(f"{up.url}nosuchpage/").headers.get_list("X-Request-Id")
        assert len({*static, *missing}) == 2
        if stack in WITHOUT_FILE:
            return
        until(lambda: any("nosuchpage" in str(entry) for entry in entries(log)), "the last request is logged")
        (line,) = (entry for entry in entries(log) if "?kept" in str(entry))
        text = json.dumps(line)
        assert OWN in text
        assert clients(line) == {"127.0.0.0"}
        assert any(missing[0] in json.dumps(entry) for entry in entries(log))
