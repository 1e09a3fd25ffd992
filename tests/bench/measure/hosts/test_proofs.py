"""The site's commands on a host, its ports through a tunnel, and refusals of `verify --inventory`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import programs
from bench.cli import main
from bench.errors import BenchError
from bench.serve.machine import orphans
from bench.serve.production.inventory import Host
from bench.verify.hosts import proofs
from bench.verify.hosts.deployed import HostSite, discover_site
from bench.verify.hosts.front_log import FrontLog
from bench.verify.hosts.ssh import tunnel
from bench.verify.mismatch import Figure, Mismatch, NotTried
from bench.verify.site import Account
from bench.verify.target_site import NO_COMMANDS
from bench.verify.wire import PageResponse
from tests.cases import kit

HERE = Host("web1", "127.0.0.1", ("web",), "127.0.0.1", local=True)
THERE = replace(HERE, name="web2", address="127.0.0.2")
# Stand-in for `benchapp-manage shell -c CODE`, with a manage.py that prints its arguments.
MANAGE = '#!/bin/sh\ncd {folder} && echo "8 objects imported automatically" && exec python -c "$3"\n'
SAYS = (
    "import json, os, sys\n"
    "if sys.argv[1] == 'proberows': sys.exit('author 5: no probe has made it')\n"
    "open('calls', 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
    "account = {'username': os.environ['BENCHAPP_PROBES'], 'password': sys.argv[2:]}\n"
    "print(json.dumps({'accounts': [account], 'others': json.load(open('others'))}, indent=1))\n"
)


@pytest.fixture
def site(tmp_path, monkeypatch):
    (tmp_path / "manage.py").write_text(SAYS)
    (tmp_path / "others").write_text("[]")
    (tmp_path / "benchapp-manage").write_text(MANAGE.format(folder=tmp_path))
    (tmp_path / "benchapp-manage").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return HostSite({"login": "/login/"}, {}, tmp_path, "/static/", NO_COMMANDS, host=HERE)


def test_a_command_runs_with_the_probes_in_the_environment_of_the_units(site):
    words = ["create", "--count", "2", "--owner", orphans.owner()]
    assert site.create_accounts(2) == [Account("1", words)]


def test_accounts_that_a_killed_verification_left_are_removed_by_the_next(site, tmp_path):
    with subprocess.Popen([sys.executable, "-c", "pass"]) as ended:
        gone = [*orphans.owner().split()[:2], str(ended.pid), "1.00"]
    others = {"verify-1": " ".join(gone), "verify-2": orphans.owner(), "verify-3": f"elsewhere {' '.join(gone[1:])}"}
    listed = [{"username": name, "owner": owner} for name, owner in others.items()]
    (tmp_path / "others").write_text(json.dumps(listed))
    site.create_accounts(2)
    assert (tmp_path / "calls").read_text().splitlines()[1:] == ["verifyaccount delete verify-1"]


def test_a_command_that_fails_names_its_host_and_why(site):
    with pytest.raises(BenchError) as raised:
        site.at(THERE).write_row(5, "edit", {})
    assert str(raised.value) == "web2: manage.py proberows: exit status 1: author 5: no probe has made it"


def test_a_host_without_the_site_is_named(monkeypatch, tmp_path):
    with pytest.raises(BenchError, match=r"^web1: manage\.py siteurls: exit status 127: .*benchapp-manage.*not found"):
        discover_site(HERE, kit())


def test_a_tunnel_through_a_host_that_refuses_is_one_line():
    if shutil.which("ssh") is None:
        pytest.skip("program not installed: ssh")
    with pytest.raises(BenchError) as raised, tunnel(replace(HERE, local=False, port=1), "127.0.0.1", 80):
        pass
    message = "web1: no tunnel by ssh: connect to host 127.0.0.1 port 1: Connection refused"
    assert str(raised.value) == message


INVENTORY = (
    "[front]\nf1 ansible_host=10.0.0.1\n[web]\nw1 ansible_host=10.0.0.2\nw2 ansible_host=10.0.0.3\n"
    "[db]\nd1 ansible_host=10.0.0.4\n[cache]\nd1\n"
)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["nginx-uwsgi", "--layer", "none", "--database", "postgresql"],
            "an existing deployment; leave out --database",
        ),
        (["nginx-uwsgi", "--layer", "none", "--quick"], "an existing deployment; leave out --quick"),
        (
            ["nginx-uwsgi", "--layer", "none", "--target", "http://x/"],
            "an existing deployment; leave out --target",
        ),
        (["nginx-uwsgi", "--layer", "none", "--python", "3.13"], "an existing deployment; leave out --python"),
        (["--layer", "none"], "name the one STACK that is deployed, and its --layer"),
        (["nginx-uwsgi"], "name the one STACK that is deployed, and its --layer"),
        (["nginx-uwsgi", "--layer", "none", "--layer", "varnish"], "name the one STACK that is deployed, and its --l"),
        (
            ["nginx-uwsgi", "--layer", "staticgenerator"],
            "layer staticgenerator: not over several hosts: a page is a file of",
        ),
        (["gunicorn", "--layer", "none"], "gunicorn: not over several hosts: its one server is web server and applic"),
        (["nginx-uwsgi", "--layer", "none", "--set", "nonsense=1"], "nonsense"),
    ],
)
def test_what_cannot_be_verified_on_hosts_is_one_line(tmp_path, capsys, words, message):
    if programs.find(["ansible-inventory"]) is None:
        pytest.skip("program not installed: ansible-inventory")
    path = tmp_path / "hosts.ini"
    path.write_text(INVENTORY)
    assert main.main(["verify", "--inventory", str(path), *words]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("benchapp verify: ") and message in line


class Front:
    """A front whose web hosts each have other pages, by the number of the request."""

    bypass = {"Cookie": "sessionid=nobody"}

    def __init__(self, *responses: PageResponse):
        self.responses, self.requests = responses, 0
        self.site = SimpleNamespace(
            main_paths=["/"], url=lambda kind: "/login/" if kind == "login" else "/", static_url="/static/"
        )

    def get(self, path: str, headers: object = ()) -> PageResponse:
        self.requests += 1
        return self.responses[self.requests % len(self.responses)]


def page(text: str = "home", **headers: str) -> PageResponse:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return PageResponse(200, "HTTP/1.1", named, text.encode())


def deployed(front: Front, root: Path = Path("/nowhere"), requests: tuple[int, int] | None = (5, 5)):
    by_host = requests and {"web1": requests[0], "web2": requests[1]}
    log = SimpleNamespace(begin=lambda: None, requests=lambda: by_host)
    return SimpleNamespace(front=front, web=(HERE, THERE), front_host=HERE, log=log, static_root=str(root))


LINE = '10.0.0.9 - - [22/Nov/2026:20:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "curl" site.example 1a 0.001 0.001 "{}"\n'


def test_the_log_of_the_front_tells_the_requests_of_each_web_host(tmp_path):
    path = tmp_path / "the access.log"
    log = FrontLog(HERE, (HERE, THERE), str(path))
    # A server makes its log with the first request.
    log.begin()
    assert log.requests() is None
    path.write_text(LINE.format("127.0.0.1:8001") * 5)
    log.begin()
    with path.open("a") as file:
        file.write(LINE.format("127.0.0.1:8001") * 2 + LINE.format("-") + LINE.format("127.0.0.2:8001"))
    assert log.requests() == {"web1": 2, "web2": 1}
    log.begin()
    assert log.requests() is None
    path.rename(tmp_path / "access.log.1")
    path.write_text(LINE.format("127.0.0.1:8001") * 9)
    assert log.requests() is None


def test_hosts_that_respond_differently_or_not_at_all_are_found():
    assert list(proofs.responds(deployed(Front(page())))) == [Figure("requests_web1", 5), Figure("requests_web2", 5)]
    (wrong, *_) = proofs.responds(deployed(Front(page(), page("another"))))
    assert (wrong.expected, wrong.got) == ("GET /, 24 times: one page", "2 pages, other statuses: set()")
    *_, silent = proofs.responds(deployed(Front(page()), requests=(5, 0)))
    assert silent == Mismatch("web2 responds to some of 24 requests", "none")
    with pytest.raises(NotTried):
        list(proofs.responds(deployed(Front(page()), requests=None)))


def test_hosts_that_only_the_front_can_reach_and_did_not_are_named():
    of_two = SimpleNamespace(web=(HERE, THERE), direct={})
    shown = proofs.WriteTimings(requests=Counter(web1=3, web2=4))
    assert list(proofs.unproven(of_two, shown)) == [Figure("reads_web1", 3), Figure("reads_web2", 4)]
    with pytest.raises(NotTried) as raised:
        list(proofs.unproven(of_two, proofs.WriteTimings(requests=Counter(web1=3))))
    message = "at web2: only the front can reach it, and its log has no such request after a write"
    assert str(raised.value) == message
    assert list(proofs.unproven(SimpleNamespace(web=(HERE, THERE), direct={"web1": 0, "web2": 0}), shown)) == []


def test_a_cookie_from_a_cache_is_found():
    fresh = [page(Set_Cookie=f"csrftoken={number:032}") for number in range(99)]
    assert list(proofs.cookies(deployed(Front(*fresh)))) == []
    assert list(proofs.cookies(deployed(Front(page(Set_Cookie="language=en"))))) == []
    cached = page(Set_Cookie=f"csrftoken={7:032}; Path=/")
    mismatch = next(proofs.cookies(deployed(Front(cached))))
    assert mismatch == Mismatch("GET /: a cookie for each visitor", "csrftoken twice")


def test_static_files_that_differ_between_hosts_are_found(tmp_path, monkeypatch):
    digests = {"web1": {"./a.css": "1", "./staticfiles.json": "1"}, "web2": {"./a.css": "2", "./staticfiles.json": "1"}}
    monkeypatch.setattr(proofs, "_files", lambda host, root: digests[host.name])
    monkeypatch.setattr(proofs, "_served", lambda deployed, files: iter(()))
    mismatches = [item for item in proofs.static(deployed(Front(page()))) if isinstance(item, Mismatch)]
    assert mismatches == [Mismatch("web2: ./a.css as on web1", "1 file with other bytes")]
    digests["web2"] = {**digests["web1"], "./b.css": "1"}
    mismatches = [item for item in proofs.static(deployed(Front(page()))) if isinstance(item, Mismatch)]
    assert mismatches == [Mismatch("web1: ./b.css of web2", "1 file missing")]


def test_the_files_of_a_host_are_read_there(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    assert list(proofs._files(HERE, str(tmp_path))) == ["./a.txt"]
    with pytest.raises(BenchError, match=r"^web1: static files: exit status"):
        proofs._files(HERE, str(tmp_path / "none"))
