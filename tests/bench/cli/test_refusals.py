"""Bad input on the command line: one line with the problem, status 2, and nothing is begun."""

from __future__ import annotations

import pytest

from bench import paths

LONG = "x" * 300


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["up", "nosuch"], "benchapp up: no stack called 'nosuch'; `python -m bench list` prints all"),
        (["up", "gunicorn", "--layer", "fragmets"], "benchapp up: no layer called 'fragmets'; did you mean fragments?"),
        (["up", "gunicorn", "--port", "0"], "argument --port: '0' is not a whole number from 1 to 65535"),
        (
            ["up", "gunicorn", "--env", "DEBUG"],
            "argument --env: DEBUG: write it as NAME=VALUE, for example BENCHAPP_CONN_MAX_AGE=0",
        ),
        (
            ["up", "gunicorn", "--env", "ALLOWED_HOSTS=other.test"],
            "argument --env: ALLOWED_HOSTS=other.test: the instrument requests the site as 127.0.0.1; write",
        ),
        (["up", "gunicorn", "--database", "oracle"], "--database oracle: use sqlite, postgresql or a URL"),
        (
            ["up", "gunicorn", "--database", "oracle://user:secret@host/name"],
            "benchapp up: DATABASE_URL: 'oracle' is not a database of this site: use sqlite:///FILE or postgresql://",
        ),
        (
            ["up", "gunicorn", "--database", "postgresql://user:secret@127.0.0.1:1/name"],
            "benchapp up: PostgreSQL database name at 127.0.0.1:1: connection to server",
        ),
        (["up", "gunicorn", "--database", "postgresql://["], "--database: not a readable URL; write postgresql:"),
        (
            ["up", "gunicorn", "--database", "sqlite:////nowhere/x"],
            "/nowhere/x: no such database; run ./manage.py migrate",
        ),
        (["up", "gunicorn", "--set", "listener=tls"], "gunicorn: gunicorn has no TLS listener; use listener=plain"),
        (["render", "gunicorn", "--output", "bench"], "/bench: not empty; name a new or empty directory"),
        (["render", "gunicorn", "--output", "Makefile"], "/Makefile: is a file; name a new or empty directory"),
        (
            ["render", "gunicorn", "--output", "/tmp/x", "--values", "nosuch"],
            "no values called 'nosuch' in deploy/values",
        ),
        (["tune", "gunicorn"], "benchapp tune: name a STACK and a limit of its latency"),
        (
            ["tune", "gunicorn", "--capacity", "p95=fast"],
            "benchapp tune: argument --capacity: p95=fast: write it as p95=200ms",
        ),
        (["up", "gunicorn", "--keep-going"], "benchapp up: --keep-going: no such option; did you mean --restart?"),
        (["doctor", "--project", "nosuch"], "benchapp doctor: --project /"),
        (["doctor", "--project", "manage.py"], f"/manage.py: a file; name its folder: --project {paths.KIT}\n"),
        (["doctor", "--config", "nosuch.toml"], "--config nosuch.toml: no such file; name one with"),
        (["report", "README.md"], "benchapp report: README.md: a file; give the folder that "),
        (["run", "--guard", "noise=off"], "argument --guard: noise=off: no guard is called 'noise'; there are: tool, "),
        (["run", "--guard", "drft=1"], "argument --guard: drft=1: no guard is called 'drft'; did you mean drift?"),
        (["run", "--guard", "tool=x"], "argument --guard: tool=x: 'x' is no bound; write a number from 0, or off"),
        # Faults have other guards.
        (["faults", "--guard", "drift=off"], "drift=off: no guard is called 'drift'; there are: interference"),
        (
            ["verify", "--check", "nosuch"],
            "no check is called 'nosuch'; `python -m bench verify --list-checks` prints all",
        ),
        (
            ["faults", "gunicorn", "--fault", "x"],
            "no fault is called 'x'; `python -m bench faults --list-faults` prints",
        ),
        (["hosts", "check", "--inventory", "nosuch.yml"], "nosuch.yml: no such file; write an Ansible inventory"),
        (
            ["run", "gunicorn", "--layer", "none", "--output", "bench", "--dry-run"],
            "bench: not empty, and not a run; name",
        ),
        (
            ["faults", "gunicorn", "--output", "bench", "--dry-run"],
            "bench: not empty, and not a run; name a new folder",
        ),
        (["frobnicate"], "benchapp: no command called 'frobnicate'; there are: list, doctor, "),
        (["verfy", "gunicorn"], "benchapp: no command called 'verfy'; did you mean verify?"),
        (["serve", "gunicorn"], "benchapp: no command called 'serve'; did you mean up?"),
        (["help", "benchmark"], "benchapp: no command called 'benchmark'; did you mean run?"),
        (["-v"], "benchapp: -v: no such option; did you mean --version?"),
        (["--project", "x", "doctor"], "benchapp: --project: name the command first: list, doctor, "),
        (["run", "--version"], "benchapp run: --version: write it without a command: python -m bench --version"),
        (["run", "-v"], "benchapp run: -v: no such option; logs "),
        (
            ["run", "--until", "5m"],
            "benchapp run: --until: no such option; did you mean --until-decided or --max-time?",
        ),
        (["run", "--until=5m"], "benchapp run: --until: no such option; did you mean --until-decided or --max-time?"),
        (["run", "--conections", "8"], "benchapp run: --conections: no such option; did you mean --connections?"),
        (["run", "--concurrency", "8"], "benchapp run: --concurrency: no such option; did you mean --connections?"),
        (["report", "x", "--out", "y"], "benchapp report: --out: no such option; did you mean --output?"),
        (["tune", "--dry-run"], "benchapp tune: --dry-run is an option of faults, run; see python -m bench help tune"),
        (["up", "gunicorn", "--host", "0.0.0.0"], "benchapp up: --host: no such option; `up` serves on 127.0.0.1"),
        (["doctor", "nosuch"], "benchapp doctor: nosuch: name the folder of a project by --project nosuch; see "),
        (["faults", "--resume", "nosuch"], "benchapp faults: nosuch: no such directory; give a folder that "),
        (["verify", "gunicorn", "--layer", "none", "--group", "cach"], "--group: 'cach': did you mean caching?"),
        (["render", "gunicorn", "-o", "x", "--format", "docker"], "'docker': use one of systemd, compose, kubernetes"),
        (["doctor", "tests"], "benchapp doctor: tests: name the folder of a project by --project tests; see "),
        (["compare", "a", "b", "c"], "benchapp compare: c: one argument too many; see python -m bench help compare"),
        (
            ["faults", "gunicorn", "--layer", "none", "--fault", "front-server"],
            "benchapp faults: nothing can be made here: gunicorn with layer none: the application",
        ),
        (
            ["faults", "--resume", "bench"],
            "bench: it holds no faults; give a folder that `python -m bench faults` made",
        ),
        # Values.
        (["run", "--output", LONG], f"argument -o/--output: {LONG}: File name too long"),
        (["run", "--resume", LONG], f"argument --resume: {LONG}: File name too long"),
        (["run", "--connections", "0"], "argument --connections: '0' is not a whole number from 1"),
        (["run", "--rate", "1.5"], "--rate: '1.5' is neither a whole number from 1 to 100000 nor a speed"),
        (["run", "--margin", "5"], "argument --margin: '5' is not a share such as 0.05"),
        (["run", "--margin", "nan"], "argument --margin: 'nan' is not a share such as 0.05"),
        (["run", "--rounds", "10001"], "argument --rounds: '10001' is not a whole number from 1 to 10000"),
        (["run", "--duration", "0.5"], "argument --duration: '0.5' is not a whole number from 1 to 86400"),
        (["run", "--tool", "k6"], "argument --tool: 'k6': use one of wrk, ab, siege"),
        (["run", "--max-time", "3"], "argument --max-time: '3' is not a time such as 90s, 3m or 1h"),
        (["run", "--max-time", "0m"], "argument --max-time: '0m' is not a time such as 90s, 3m or 1h"),
        (["run", "--capacity", "200ms"], "argument --capacity: 200ms: write it as p95=200ms"),
        (
            ["run", "gunicorn", "--layer", "none", "--python", "3.99"],
            "--python 3.99: no python3.99 runs on PATH; give the path of an interpreter",
        ),
        (
            ["verify", "--target", "127.0.0.1:8000"],
            "--target: 127.0.0.1:8000: not the address of a site; write it as http",
        ),
        # Several names.
        (["run", "gunicorn,uwsgi"], "argument STACK: gunicorn,uwsgi: give each name by itself, without a comma"),
        (["up", "--stack", "gunicorn,uwsgi"], "argument --stack: gunicorn,uwsgi: give each name by itself"),
        (["run", "--layer", "varnish,fragments"], "varnish,fragments: write varnish+fragments for all of them in one"),
        (["faults", "gunicorn", "--layer", "none+varnish"], "none+varnish: none cannot be joined with another layer"),
        (["verify", "--check", "hit,vary"], "argument --check: hit,vary: give each name by itself"),
        (["up"], "benchapp up: name one STACK"),
        (["up", "gunicorn", "--stack", "uwsgi"], "benchapp up: name one STACK"),
        (["up", "gunicorn", "uwsgi"], "benchapp up: uwsgi: one argument too many"),
        (
            ["verify", "--target", "http://127.0.0.1:1/", "--layer", "a", "--layer", "b"],
            "name the one layer it runs under",
        ),
        # Combinations: test_options.py has all of the table of options.
        (
            ["run", "--capacity", "p95=1s", "--until-decided"],
            "--capacity and --until-decided exclude each other; leave",
        ),
        (["render", "gunicorn", "-o", "x", "--local", "--values", "y.toml"], "--values and --local exclude each other"),
        (
            ["render", "gunicorn", "-o", "x", "--inventory", "y", "--format", "compose"],
            "--format and --inventory exclude",
        ),
        (["report", "x", "--json", "--schema"], "benchapp report: --schema and --json exclude each other"),
        (["faults", "--dry-run", "--json"], "benchapp faults: --dry-run and --json exclude each other"),
        (["faults", "gunicorn", "--resume", "x"], "benchapp faults: --resume takes its plan from x; leave out STACK"),
        (["verify", "uwsgi", "--target", "http://127.0.0.1:1/"], "--target names a running site; leave out STACK"),
        (["verify", "--allow-writes"], "--allow-writes goes with --project; add that, or leave out --allow-writes"),
        (["faults", "--allow-writes"], "--allow-writes goes with --project; add that, or leave out --allow-writes"),
    ],
)
def test_bad_input_is_refused_in_one_line(words, message, bench):
    done = bench(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr
    assert done.stdout == ""
