"""Output and exit status of `python -m bench verify`."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest

from bench import programs
from bench.cli import verify
from bench.cli.main import main
from bench.errors import BenchError, DeploymentError
from bench.serve.catalog import catalog
from bench.serve.deployment import case as cases
from bench.serve.deployment import deployment
from bench.serve.machine.identity import worker
from bench.serve.machine.ports import free_port
from bench.verify import suite, summary, verifier
from bench.verify.changing import Changed
from bench.verify.in_process import ExpectedPage
from bench.verify.outcome import Outcome
from bench.verify.suite import Selection, all_checks
from bench.verify.verifier import Verifier
from tests.bench.verify.mutant import FakeRunning
from tests.cases import kit, resolved


def learnt_at_once(monkeypatch, site):
    """The site is known without its commands."""
    for module in (verifier, verify):
        monkeypatch.setattr(module, "discover_site", lambda *words, **more: site)
        monkeypatch.setattr(module, "prepare", lambda site: site)


@pytest.fixture
def database_url(tmp_path, monkeypatch):
    """A separate database, so that tests at the same time do not wait for each other."""
    (tmp_path / "site.sqlite3").touch()
    worker().give_tree(tmp_path)
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path / 'site.sqlite3'}")
    return f"sqlite:///{tmp_path / 'site.sqlite3'}"


@pytest.fixture
def deployments(mutant, site, monkeypatch, database_url):
    """Deployments are the mutant, with a test's mutations under a stack's name."""
    wrong: dict[str, str | DeploymentError] = {}
    calls: list[tuple] = []

    @contextlib.contextmanager
    def deployed(case, **how):
        stack, layer = case.stack.name, case.layer_name
        calls.append((stack, layer, how))
        mistake = wrong.get(stack, "")
        if isinstance(mistake, DeploymentError):
            raise mistake
        mutant.reset(*mistake.split(), caches=layer not in ("none", "fragments"))
        running = FakeRunning(mutant, case=case)
        running.env["DATABASE_URL"] = "sqlite:////tmp/none.sqlite3"
        yield running

    monkeypatch.setattr(deployment, "deployed", deployed)
    learnt_at_once(monkeypatch, site)
    # All programs are installed.
    monkeypatch.setattr(programs, "find", lambda *words: "/bin/true")
    wrong["calls"] = calls
    return wrong


def run(capsys, *words):
    """Exit status, standard output and standard error of `benchapp verify` with these words."""
    status = main(["verify", *words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


QUICK = ("--check", "status", "--check", "not-found")


def test_a_wrong_deployment_is_reported_and_exits_with_1(capsys, deployments):
    deployments["uwsgi"] = "plain-404"
    status, out, err = run(capsys, "gunicorn", "uwsgi", "--layer", "none", *QUICK)
    assert status == 1
    assert err.startswith("gunicorn with layer none: 2 checks passed (")
    assert out.startswith("gunicorn with layer none: 2 checks passed\nuwsgi with layer none: 1 of 2 checks failed\n")
    assert (
        "FAIL uwsgi with layer none, not-found: visitors get a wrong response\n  expected  GET /no/such/page/: " in out
    )
    assert (
        "  serve     python -m bench up uwsgi --port 8000\n  repeat    curl -i --path-as-is http://127.0.0.1:8000/"
        in out
    )


def test_a_failed_request_names_the_options_that_serve_the_same_again(capsys, deployments, tmp_path):
    deployments["uwsgi"] = "plain-404"
    given = ("--set", "processes=3", "--env", "LANG=de DE", "--size", "bronze")
    _, out, _ = run(capsys, "uwsgi", "--layer", "page-cache", *given, *QUICK)
    serve = "bench up uwsgi --layer page-cache --size bronze --env 'LANG=de DE' --set processes=3 --port 8000"
    assert serve in out


def test_a_page_that_differs_from_rendering_to_rendering_is_named(capsys, deployments, monkeypatch, site):
    home = site.pages["/"]
    twice = replace(home, again=(home.body.replace("<h1", "<h2 "),))
    monkeypatch.setattr(verifier, "prepare", lambda _: replace(site, pages={**site.pages, "/": twice}))
    status, _, err = run(capsys, "gunicorn", "--layer", "none", "--check", "status")
    assert status == 0
    assert err.count("note: / differs from one rendering to the next") == 1


def test_json_has_every_outcome_and_skip(capsys, deployments):
    deployments["uwsgi"] = "plain-404"
    status, out, _ = run(capsys, "uwsgi", "--layer", "none", "--layer", "staticgenerator", "--json", *QUICK)
    document = json.loads(out)
    assert status == 1
    assert document["ok"] is False
    assert [(item["stack"], item["layer"], item["check"], item["ok"]) for item in document["outcomes"]] == [
        ("uwsgi", "none", "status", True),
        ("uwsgi", "none", "not-found", False),
    ]
    assert [(item["stack"], item["layer"]) for item in document["skips"]] == [("uwsgi", "staticgenerator")]
    assert "staticgenerator needs" in document["skips"][0]["reason"]


def test_a_deployment_that_does_not_come_up_stops_no_other(capsys, deployments):
    deployments["gunicorn"] = DeploymentError("gunicorn exited with status 1: no such module")
    status, out, _ = run(capsys, "gunicorn", "uwsgi", "--layer", "none", *QUICK)
    assert status == 1
    assert "FAIL gunicorn with layer none, up" in out
    assert "got       gunicorn exited with status 1: no such module" in out
    assert "uwsgi with layer none: 2 checks passed" in out


def test_a_server_that_dies_while_it_is_verified_is_a_failure(capsys, deployments, monkeypatch):
    monkeypatch.setattr(FakeRunning, "died", lambda self: DeploymentError("gunicorn was killed by SIGKILL"))
    status, out, _ = run(capsys, "gunicorn", "--layer", "none", *QUICK)
    assert status == 1
    assert "got       gunicorn was killed by SIGKILL" in out


def test_without_names_all_but_the_historic_stacks_that_can_run_here_are_verified(capsys, deployments, monkeypatch):
    passed = Outcome("any", "none", "status", True)
    monkeypatch.setattr(Verifier, "verify", lambda *words: [passed])
    status, _, _ = run(capsys, "--all")
    pairs = [(stack, layer) for stack, layer, _ in deployments["calls"]]
    expected = [
        (stack, layer)
        for stack in catalog.read().stacks
        if catalog.read().stacks[stack].era != "historic"
        for layer in catalog.read().layers
        if not isinstance(cases.resolve(kit(), stack, layer), cases.CannotRun)
    ]
    assert status == 0
    assert pairs == expected


def test_a_declaration_is_printed_with_its_reason():
    outcomes = [
        Outcome("s", "none", "status", True),
        Outcome("s", "none", "upload", True, known_limitation="its parser stops at 64 kB"),
        Outcome("s", "none", "browser", True, skipped="no browser"),
    ]
    text = summary.as_text(outcomes, [])
    assert text.startswith("s with layer none: 1 check passed, 1 known limitation, 1 skipped\n")
    assert text.endswith("SKIPPED\n  browser: no browser")
    assert "KNOWN LIMITATIONS\n  s with layer none, upload: its parser stops at 64 kB" in text


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_nothing_to_verify_is_an_error_that_says_why(capsys, deployments, words):
    stacks = ("gunicorn", "uvicorn", "granian")
    status, out, err = run(capsys, *stacks, "--layer", "nginx-memcached", *words)
    assert status == 2
    reason = cases.resolve(kit(), "gunicorn", "nginx-memcached").reason
    # The reason is the same for all three and is said once.
    message = f"gunicorn, uvicorn, granian with layer nginx-memcached: {reason}"
    assert err == f"benchapp verify: nothing to verify here: {message}\n"
    if words:
        document = json.loads(out)
        assert (document["ok"], document["outcomes"]) == (False, [])
        assert [item["stack"] for item in document["skips"]] == list(stacks)


def test_a_running_site_is_verified_as_the_target(capsys, mutant, site, monkeypatch, database_url):
    learnt_at_once(monkeypatch, site)
    mutant.reset("plain-404")
    status, out, _ = run(capsys, "--target", f"{mutant.url}/", "--database", database_url, *QUICK)
    assert status == 1
    # The request is repeated against the target itself.
    failed = out.partition("FAIL target with layer none, not-found")[2]
    assert f"  repeat    curl -i --path-as-is {mutant.url}/no/such/page/" in failed and "serve" not in failed


def test_a_reason_for_all_deployments_is_printed_once():
    both = [Outcome("s", layer, name, True, skipped="x") for layer in ("a", "b") for name in ("tls", "login")]
    text = summary.as_text([*both, Outcome("s", "a", "hit", True, skipped="y"), Outcome("s", "b", "hit", True)], [])
    assert text.endswith("SKIPPED\n  tls, login: x\n  s with layer a, hit: y")


def test_a_target_without_a_database_is_verified_as_far_as_possible(capsys, mutant):
    mutant.reset("port-lost", caches=True)
    names = ("status", "redirects", "head", "login", "interpreter")
    words = [word for name in names for word in ("--check", name)]
    status, out, _ = run(capsys, "--target", f"{mutant.url}/", *words)
    assert status == 1
    assert "FAIL target with layer none, redirects" in out
    assert "target with layer none: 1 of 5 checks failed" in out
    needs = "it needs the site's database: give --database as the URL that the running site uses"
    assert f"SKIPPED\n  status, login: {needs}\n" in out
    assert "interpreter: its Python is not known" in out


def test_a_target_that_is_not_there_is_one_line(capsys):
    port = free_port()
    status, out, err = run(capsys, "--target", f"http://127.0.0.1:{port}/")
    assert (status, out) == (2, "")
    assert err == (
        f"benchapp verify: --target http://127.0.0.1:{port}/: no response (Connection refused); "
        "start the site, or correct the address, then try again\n"
    )


def test_a_target_that_is_another_site_is_one_line(capsys, monkeypatch, mutant):
    mutant.reset("error-everywhere")
    status, _, err = run(capsys, "--target", f"{mutant.url}/")
    assert status == 2
    assert err.count("\n") == 1
    assert f"--target {mutant.url}/: GET /healthz has status 500, not 2xx" in err


def test_what_a_layer_declares_holds_for_a_target_too(capsys, mutant):
    mutant.reset()
    words = ("--layer", "fragments", "--check", "keeps-pages", "--json")
    status, out, _ = run(capsys, "--target", f"{mutant.url}/", *words)
    (outcome,) = json.loads(out)["outcomes"]
    assert (status, outcome["ok"]) == (0, True)
    assert outcome["known_limitation"].startswith("it caches parts of pages")


def test_no_deployment_is_brought_up_for_no_check(capsys, deployments):
    status, out, _ = run(capsys, "gunicorn", "--layer", "none", "--layer", "view-cache", "--check", "other-files")
    assert status == 0
    assert [(stack, layer) for stack, layer, _ in deployments["calls"]] == [("gunicorn", "view-cache")]
    assert "CANNOT RUN HERE\n  gunicorn with layer none: these checks run only with a layer" in out


def test_the_document_counts_layers_by_groups():
    outcomes = [
        Outcome("one", "none", "status", True),
        Outcome("one", "varnish", "status", True),
        Outcome("one", "varnish", "codings", False, "a", "b", group="bytes"),
        Outcome("two", "varnish", "codings", True, group="bytes"),
        Outcome("one", "fragments", "keeps-pages", True, known_limitation="it keeps parts", group="caching"),
        Outcome("one", "fragments", "vary", True, group="caching"),
        Outcome("one", "fragments", "hit-ratio", True, group="web", figures={"hit_ratio_no_cookie": 0.5}),
        Outcome("one", "fragments", "junk-hosts", True, group="web", skipped="left out"),
    ]
    document = summary.as_document(outcomes, [])
    assert document["layers"]["varnish"]["bytes"] == {
        "result": "failed",
        "checks": 2,
        "failed": 1,
        "skipped": 0,
        "known_limitation": 0,
        "passed": 1,
    }
    assert document["layers"]["fragments"]["web"]["result"] == "skipped"


def test_the_checks_are_listed_with_what_each_proves(capsys):
    status, out, _ = run(capsys, "--list-checks")
    assert status == 0
    assert max(map(len, out.splitlines())) <= 80
    words = " ".join(out.split())
    for item in all_checks():
        assert f"{item.name} {item.group} {' '.join(item.title.split())}" in words


def test_the_site_is_requested_once_for_its_responses(deployments, monkeypatch):
    prepared = []
    monkeypatch.setattr(verifier, "prepare", lambda site: prepared.append(site) or site)
    one = Verifier(kit(), Selection(("status",)))
    for name in ("gunicorn", "uwsgi"):
        with deployment.deployed(resolved(name)) as running:
            assert [item.ok for item in one.verify(running)] == [True]
    assert len(prepared) == 1


def test_a_failing_command_of_the_site_is_an_error_not_a_mismatch(deployments, monkeypatch):
    def fails(*words, **more):
        raise BenchError("manage.py siteurls exited with status 1: no such table")

    monkeypatch.setattr(verifier, "prepare", fails)
    assert main(["verify", "gunicorn", "--layer", "none"]) == 2


CHANGED = (
    "/posts/: another page now than before gunicorn with layer none was verified; stop the program that changes the "
    "database, or name another one with --database"
)
OTHER_ROWS = ExpectedPage(200, "text/html;charset=utf-8", "<p>800,001 comments</p>")


def changed_by_another(site, monkeypatch, times):
    """A site whose rows another program changes so often during verification."""
    left = [times]
    others = ("/posts/",)
    monkeypatch.setattr(suite, "changed", lambda site: Changed({}, others * (site.pages["/posts/"] is OTHER_ROWS)))

    def prepare(*words, **more):
        if left[0]:
            left[0] -= 1
            return replace(site, pages={**site.pages, "/posts/": OTHER_ROWS})
        return site

    monkeypatch.setattr(verifier, "prepare", prepare)


def test_rows_that_another_program_changed_are_no_wrong_response(capsys, deployments, monkeypatch, site):
    changed_by_another(site, monkeypatch, times=1)
    status, out, err = run(capsys, "gunicorn", "--layer", "none", "--check", "content")
    assert status == 0
    assert "gunicorn with layer none: 1 check passed" in out
    assert err.splitlines()[0] == f"{CHANGED}; it is verified again"


def test_rows_that_change_on_and_on_end_it_without_a_verdict(capsys, deployments, monkeypatch, site):
    changed_by_another(site, monkeypatch, times=2)
    status, out, err = run(capsys, "gunicorn", "--layer", "none", "--check", "content")
    assert (status, out) == (2, "")
    assert err.splitlines() == [f"{CHANGED}; it is verified again", f"benchapp verify: {CHANGED}"]


def test_a_wrong_page_is_a_wrong_response_when_the_rows_are_the_same(capsys, deployments):
    deployments["gunicorn"] = "other-content"
    status, out, err = run(capsys, "gunicorn", "--layer", "none", "--check", "content")
    assert status == 1
    assert "FAIL gunicorn with layer none, content" in out
    assert "changed the database" not in err
