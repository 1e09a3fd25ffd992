"""`run --inventory`: the deployment is measured from the load hosts, or one line explains why not."""

from __future__ import annotations

import json
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from bench.cli import main
from bench.measure.hosts.hosts_test_bed import HostsLoad
from bench.measure.hosts.loaders import Loaders
from bench.measure.load import LoadJob
from bench.measure.records.folder import read_run
from bench.measure.run import guards
from bench.measure.run.guards import Observed
from bench.serve.deployment.tls import make_certificate
from bench.serve.production import inventory
from bench.serve.production.inventory import Host, Inventory
from bench.serve.production.several_hosts import Deployed
from bench.verify.hosts import host_record
from tests.bench.measure.hosts import inventories
from tests.bench.measure.load.load_target import target
from tests.cases import kit
from tests.skips import needs

pytestmark = pytest.mark.servers
GROUPS = {"front1": "front", "web1": "web", "load1": "load", "load2": "load"}
# The machine's other work is not the question.
UNGUARDED = [word for name in guards.BOUNDS for word in ("--guard", f"{name}=off")]
QUICK = ["--workload", "home", "--duration", "1", "--rounds", "1", *UNGUARDED]


def hosts(**changes: Host) -> Inventory:
    every = {
        name: Host(name, f"127.0.0.{number}", (group,), name, local=True)
        for number, (name, group) in enumerate(GROUPS.items(), 1)
    }
    return Inventory(Path("hosts.ini"), tuple({**every, **changes}.values()))


def trusting(path: Path) -> Inventory:
    """The hosts, with a file of certificates for the front."""
    front, *_ = hosts().hosts
    return hosts(front1=replace(front, trust=path))


@pytest.fixture(scope="module")
def site():
    with target(0.005) as running:
        yield running


@pytest.fixture
def there(site, tmp_path, monkeypatch):
    """The hosts' records of their deployment, and the hosts."""
    conf = tmp_path / "conf"
    conf.mkdir()
    monkeypatch.setattr(host_record, "conf", lambda: str(conf))
    monkeypatch.chdir(tmp_path)
    static, url = str(tmp_path / "static"), "http://example.org"
    of_all = Deployed("nginx-uwsgi", "none", "unlimited", url, site.server_port, False, "", static, 60)

    def put(inventory_: Inventory | None = None, loaded: bool = True, **changes: object) -> None:
        text = "0123456789abcdef\n" + replace(of_all, **changes).line
        (conf / "rendered").write_text(text)
        (conf / "loaded").write_text(text if loaded else "older\n")
        known = inventories.write(inventory_ or hosts())
        monkeypatch.setattr(inventory, "read", lambda path: known)

    put()
    return put


def run(*words: str) -> int:
    return main.main(["run", "--inventory", "hosts.ini", *words])


def refused(capsys, *words: str) -> str:
    assert run(*words) == 2
    captured = capsys.readouterr()
    *notes, refusal = captured.err.splitlines()
    assert captured.out == "" and all(line.startswith("note: the project is the demo site") for line in notes)
    return refusal.removeprefix("benchapp run: ")


def test_what_is_deployed_is_measured(there, site, tmp_path, capsys):
    there(layer="varnish", behind=True)
    folder = tmp_path / "run"
    site.requests.clear()
    assert run(*QUICK, "--rate", "50", "--output", str(folder)) == 0
    recorded = read_run(folder)
    (trial,) = recorded.trials
    assert (trial.status, trial.stack, trial.layer, trial.database) == ("ok", "nginx-uwsgi", "varnish", "deployed")
    assert (trial.requests, trial.rate_requested, trial.errors.statuses) == (50, 50.0, {"200": 50})
    assert trial.evidence.guards == {}
    # A second of warm-up, and one of load; before, meanwhile and after it pages are visited from here.
    assert 100 < sum(site.requests.values()) < 150
    assert trial.condition.hosts.keys() == recorded.environment.hosts.keys() == GROUPS.keys()
    assert recorded.environment.hosts["load2"] == ("load",)
    assert recorded.info.plan.inventory and recorded.info.finished_at
    stored = [json.loads((folder / "raw" / trial.trial_id / f"load{n}.json").read_text()) for n in (1, 2)]
    assert [each["answers"] for each in stored] == [25, 25]
    assert main.main(["report", str(folder)]) == 0
    capsys.readouterr()
    document = json.loads((folder / "report.json").read_text())
    assert {host["host"] for host in document["hosts"]} == GROUPS.keys()
    assert any("not verified" in note for note in document["runs"][0]["notes"])
    # The run is complete, and was not made on this machine.
    assert refused_resume(capsys, folder, "--inventory", "hosts.ini").startswith(f"--resume {folder}: the run is compl")
    assert refused_resume(capsys, folder).endswith("it measured hosts of an inventory; add --inventory FILE")
    there(layer="none")
    assert refused_resume(capsys, folder, "--inventory", "hosts.ini") == (
        f"--resume {folder}: it began with nginx-uwsgi with layer varnish, "
        "and the hosts have nginx-uwsgi with layer none"
    )


def test_a_front_that_has_gone_is_no_failed_trial_of_a_resumed_run(there, site, tmp_path, capsys):
    folder = tmp_path / "run"
    assert run(*QUICK, "--rate", "20", "--output", str(folder)) == 0
    info = json.loads((folder / "run.json").read_text()) | {"finished_at": None}
    (folder / "run.json").write_text(json.dumps(info))
    (folder / "trials.jsonl").write_text("")
    recorded = read_run(folder)
    assert recorded.resume_command() == f"python -m bench run --resume {folder} --inventory FILE"
    there(port=9)
    wanted = f"GET {kit().ready}: [Errno 111] Connection refused"
    assert refused_resume(capsys, folder, "--inventory", "hosts.ini") == wanted
    assert read_run(folder).trials == ()


def test_what_is_not_deployed_is_not_verified(there, capsys):
    def refusal(*words: str) -> str:
        assert main.main(["verify", "--inventory", "hosts.ini", *words]) == 2
        return capsys.readouterr().err.splitlines()[-1].removeprefix("benchapp verify: ")

    known = "the hosts have nginx-gunicorn with layer none; deploy it there first"
    there(stack="nginx-gunicorn")
    assert refusal("nginx-uwsgi", "--layer", "none") == f"STACK nginx-uwsgi: {known}"
    assert refusal("nginx-gunicorn", "--layer", "page-cache") == f"--layer page-cache: {known}"
    there(stack="nginx-uwsgi", port=81)
    wanted = "the hosts have http://example.org at port 81 with cache_seconds=60; give the --set of their `render`"
    assert refusal("nginx-uwsgi", "--layer", "none") == wanted
    there(loaded=False)
    wanted = "front1: its servers have not read its newest files: run the playbook (docs/hosts.md) again"
    assert refusal("nginx-uwsgi", "--layer", "none") == wanted


def refused_resume(capsys, folder: Path, *words: str) -> str:
    capsys.readouterr()
    assert main.main(["run", "--resume", str(folder), *words]) == 2
    return capsys.readouterr().err.removeprefix("benchapp run: ").strip()


def test_a_plan_is_shown_without_load(there, site, capsys):
    site.requests.clear()
    assert run(*QUICK, "--connections", "4", "--dry-run") == 0
    assert capsys.readouterr().out.startswith("case: nginx-uwsgi, layer none, home\n")
    assert not site.requests


@pytest.mark.parametrize(
    "words",
    [
        *(["--size", "bronze"], ["--database", "postgresql"], ["--set", "a=b"]),
        *(["--env", "A=b"], ["--python", "3.13"], ["--until-decided"], ["--keep-going"]),
    ],
)
def test_options_without_a_say_are_refused(there, capsys, words):
    wanted = f"--inventory is for an existing deployment; leave out {words[0]}"
    assert refused(capsys, *words) == wanted


def test_another_stack_has_to_be_deployed_first(there, capsys):
    wanted = "the hosts have nginx-uwsgi with layer none; deploy it there first"
    assert refused(capsys, "--stack", "nginx-gunicorn") == f"--stack nginx-gunicorn: {wanted}"
    assert refused(capsys, "--layer", "varnish") == f"--layer varnish: {wanted}"


def test_hosts_without_a_deployment_are_named(there, capsys, tmp_path):
    there(loaded=False)
    wanted = "front1: its servers have not read its newest files: run the playbook (docs/hosts.md) again"
    assert refused(capsys, *QUICK) == wanted
    (tmp_path / "conf/rendered").unlink()
    assert refused(capsys, *QUICK) == "front1: nothing is deployed there: run the playbook (docs/hosts.md)"
    for file in ("rendered", "loaded"):
        (tmp_path / "conf" / file).write_text("0123456789abcdef\n")
    wanted = "front1: an older version rendered its files: render again and run the playbook (docs/hosts.md)"
    assert refused(capsys, *QUICK) == wanted


def test_load_needs_hosts_and_connections(there, capsys):
    there(Inventory(Path("hosts.ini"), hosts().hosts[:2]))
    assert refused(capsys, *QUICK) == "hosts.ini: no host is in group load, which makes the load; name one there"
    there()
    wanted = "1 connection for 2 load hosts; use at least one for each, or fewer load hosts"
    assert refused(capsys, *QUICK, "--connections", "1") == wanted


def test_a_web_host_that_cannot_be_reached_is_named(there, capsys):
    needs("ssh")
    there(hosts(web1=Host("web1", "127.0.0.2", ("web",), "127.0.0.2", port=1)))
    wanted = "web1: cannot be reached: connect to host 127.0.0.2 port 1: Connection refused"
    assert refused(capsys, *QUICK) == wanted


def failure(tmp_path: Path) -> str:
    assert run(*QUICK, "--rate", "20", "--output", str(tmp_path / "run")) == 1
    (trial,) = read_run(tmp_path / "run").trials
    assert trial.status == "failed" and trial.figures is None
    return trial.reason


def test_a_load_host_that_cannot_be_reached_fails_the_trial(there, tmp_path):
    needs("ssh")
    there(hosts(load2=Host("load2", "127.0.0.4", ("load",), "127.0.0.4", port=1)))
    assert failure(tmp_path) == ("load2: cannot be reached: connect to host 127.0.0.4 port 1: Connection refused")


def test_a_front_that_does_not_respond_is_refused(there, tmp_path, capsys):
    there(port=9)
    words = [*QUICK, "--output", str(tmp_path / "run")]
    assert refused(capsys, *words) == f"GET {kit().ready}: [Errno 111] Connection refused"
    assert not (tmp_path / "run").exists()


def test_a_front_that_has_gone_after_the_load_fails_the_trial(there, tmp_path, monkeypatch):
    timed = HostsLoad.timed

    def gone(load: HostsLoad, *how: object) -> Observed:
        seen = timed(load, *how)
        load.site = replace(load.site, deployed=replace(load.site.deployed, port=9))
        return seen

    monkeypatch.setattr(HostsLoad, "timed", gone)
    assert failure(tmp_path) == "after the load: GET /: [Errno 111] Connection refused"


def test_a_self_signed_certificate_is_trusted_only_if_it_is_named(there, tmp_path, capsys):
    needs("openssl")
    make_certificate(tmp_path / "tls")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls/both.pem")
    with target() as site:
        site.socket = context.wrap_socket(site.socket, server_side=True)
        there(url="https://localhost", port=site.server_port)
        assert refused(capsys, *QUICK) == (
            f"GET {kit().ready}: the certificate of 127.0.0.1 is not trusted (self-signed certificate); "
            "name the one that signed it as benchapp_trust in the inventory"
        )
        there(trusting(tmp_path / "tls/fullchain.pem"), url="https://localhost", port=site.server_port)
        assert run(*QUICK, "--rate", "20", "--output", str(tmp_path / "second")) == 0
        # The load hosts verify it, too.
        job = LoadJob("https://localhost", ("/",), 10, 1, rate=10, connect=f"127.0.0.1:{site.server_port}", trust="")
        with Loaders(hosts()) as making:
            shares = making.make(job, tmp_path).shares
        assert [(share.counts["answers"], share.counts["connect"]) for share in shares] == [(0, 5)] * 2
    capsys.readouterr()
    (tmp_path / "x.pem").write_text("no certificate")
    there(trusting(tmp_path / "x.pem"))
    wanted = f"benchapp_trust of front1 is {tmp_path}/x.pem: no certificates in PEM; name a file such as fullchain.pem"
    assert refused(capsys, *QUICK) == wanted
