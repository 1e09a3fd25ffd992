"""On a booted host: who can read what, and what visitors notice of a restart, of a deploy, and of the way back."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace

import pytest
from msgspec import structs

from bench import programs
from bench.serve.project.description import Job, Worker
from bench.serve.project.opened import UnderTest
from tests.cases import kit
from tests.deploy.installing import (
    NAME,
    RENEWED,
    SOURCE,
    add_slow_page,
    blocks,
    boots,
    commit,
    deploys,
    impatient_deploy,
    install,
    no_one_waits,
    prepare,
    refused,
    release,
    render,
    response_of,
    row,
    version,
    visited,
)
from tests.deploy.machine import Machine, booted
from tests.waiting import until

# Together: what is long is to boot the host.
pytestmark = [pytest.mark.servers, pytest.mark.long]

WEB, APP = "benchapp-web", "benchapp-app"
SITE = "/var/lib/benchapp/site.sqlite3"


@pytest.fixture(
    scope="module",
    params=[None, *(pytest.param(release, marks=pytest.mark.hosts) for release in (12, 13))],
    ids=["here", "debian12", "debian13"],
)
def host(tmp_path_factory, request):
    with booted(tmp_path_factory.mktemp("machine"), request.param) as machine:
        prepare(machine)
        add_slow_page(machine)
        commit(machine, "slow-page")
        install(machine, "nginx-gunicorn")
        yield machine


def test_the_note_ends_with_a_site_that_serves(host):
    assert response_of(host, "/healthz")[0] == 200
    status, page = response_of(host, "/")
    assert status == 200 and "<html" in page
    assert response_of(host, "/static/small.txt")[0] == 200


def test_certbot_got_its_response_and_its_certificate_is_served(host):
    """By the last step of the note; the steps before had another certificate served."""
    command = f"openssl s_client -connect 127.0.0.1:443 -servername {NAME} < /dev/null 2> /dev/null"
    renewed = host.run(f"openssl x509 -noout -serial -in {RENEWED}")
    until(lambda: host.run(f"{command} | openssl x509 -noout -serial") == renewed, "the renewed certificate")
    assert host.run(f"curl -s -o /dev/null -w '%{{http_code}}' --resolve {NAME}:80:127.0.0.1 http://{NAME}/") == "301"


def test_a_changed_configuration_and_a_renewal_lose_no_request(host):
    """By the note, of a value that the site reads at its start; certbot hands over another certificate."""
    assert hsts(host) == "max-age=300"
    note = render(host, "nginx-gunicorn", "none", hsts_seconds=600)
    before = host.main_process("benchapp-gunicorn")
    with visited(host) as noticed:
        for block in blocks(note.partition("\n## After a change of the configuration")[2]):
            host.run(block)
        host.run("benchapp-certificate /srv/certificate")
    print(row(host, "configuration and certificate", noticed))
    assert noticed["failed"] == []
    assert noticed["responses"] > 12
    assert host.main_process("benchapp-gunicorn") != before
    assert hsts(host) == "max-age=600"


def hsts(host: Machine) -> str:
    headers = response_of(host, "/", "-o", "/dev/null", "-D", "-")[1]
    return re.search(r"(?im)^strict-transport-security: ([^;\s]*)", headers)[1]


def test_a_bad_file_is_not_reloaded(host):
    """The unit says so, and the server goes on with the files of before."""
    bad = "/etc/benchapp/bad.conf"
    host.run(f"echo 'include {bad};' >> /etc/benchapp/nginx.conf")
    with visited(host) as noticed:
        assert host.try_run("systemctl reload benchapp-nginx").returncode == 1
    assert noticed["failed"] == []
    assert f'open() "{bad}" failed' in host.journal()
    host.run("sed -i '$ d' /etc/benchapp/nginx.conf; systemctl reload benchapp-nginx")


def sql(host: Machine, statement: str) -> str:
    script = f"import sqlite3; c = sqlite3.connect('{SITE}', isolation_level=None)"
    return host.run(f"python3 -c {shlex.quote(f'{script}; print(c.execute({statement!r}).fetchall())')}", APP).strip()


def test_each_day_sessions_are_cleared_and_a_backup_is_made_that_can_be_put_back(host):
    """By the timers of the note, which are due at once here."""
    sql(host, "INSERT INTO django_session VALUES ('ended', '', '2001-01-01')")
    for name in ("clearsessions", "backup"):
        due = "[Timer]\nOnActiveSec=0\nAccuracySec=1ms\nRandomizedDelaySec=0\n"
        host.write(f"/etc/systemd/system/benchapp-{name}.timer.d/now.conf", due)
    host.run("systemctl daemon-reload; systemctl restart benchapp-clearsessions.timer benchapp-backup.timer")
    host.write("/etc/benchapp/backup-copy", '#!/bin/sh\nls "$1" > /var/lib/benchapp/copied\n', 0o755)
    note = (host.root / "srv/rendered/INSTALL.md").read_text()
    for block in blocks(note.partition("\n## Each day")[2].partition("\n## ")[0]):
        host.run(block)
    until(lambda: sql(host, "SELECT count(*) FROM django_session") == "[(0,)]", "no ended session")
    backup = f"/var/lib/benchapp/backups/{host.run('ls /var/lib/benchapp/backups').split()[-1]}"
    assert host.run(f"stat -c '%a %U' {backup}").split() == ["600", APP]
    assert host.run("cat /var/lib/benchapp/copied") == host.run("ls /var/lib/benchapp/backups")
    sql(host, "INSERT INTO django_session VALUES ('later', '', '2999-01-01')")
    assert "--force" in host.try_run(f"benchapp-restore {backup}").stdout
    assert sql(host, "SELECT count(*) FROM django_session WHERE session_key = 'later'") == "[(1,)]"
    host.run(f"benchapp-restore --force {backup}")
    assert sql(host, "SELECT count(*) FROM django_session WHERE session_key = 'later'") == "[(0,)]"
    assert response_of(host, "/readyz")[0] == 200
    assert host.run("systemctl list-units --failed --no-legend 'benchapp*'") == ""


def test_logs_are_rotated_and_written_on(host):
    if programs.find(["logrotate"]) is None:
        pytest.skip("program not installed: logrotate")
    response_of(host, "/before")
    host.run("logrotate --force /etc/logrotate.d/benchapp")
    log = host.root / "var/log/benchapp/access.log"

    def written() -> bool:
        response_of(host, "/after")
        return log.exists() and "/after" in log.read_text()

    until(written, "a line in the new log")
    assert "/before" in log.with_name("access.log.1").read_text()


def runs_as(host: Machine, unit: str) -> set[str]:
    return set(host.run(f"ps -o user:20= -p $(systemctl show -P MainPID {unit})").split())


def test_web_server_and_application_are_different_users(host):
    assert (runs_as(host, "benchapp-nginx"), runs_as(host, "benchapp-gunicorn")) == ({WEB}, {APP})


@pytest.mark.parametrize(
    "path",
    ["/proc/{app}/environ", "/etc/benchapp/secrets.env", "/var/lib/benchapp/site.sqlite3"],
)
def test_the_web_server_cannot_read_the_secrets(host, path):
    refuses(host, WEB, path.format(app=host.main_process("benchapp-gunicorn")))


def test_the_secrets_are_in_no_environment_and_the_application_has_them(host):
    """Not in that of its processes, nor in what systemd says of it; as a file that is its own."""
    app = host.main_process("benchapp-gunicorn")
    assert "SECRET_KEY" not in host.run(f"cat /proc/{app}/environ; systemctl show benchapp-gunicorn")
    folder = "/run/credentials/benchapp-gunicorn.service"
    assert "SECRET_KEY=" in host.run(f"cat {folder}/secrets.env", APP)
    refuses(host, WEB, f"{folder}/secrets.env")


def refuses(host: Machine, user: str, path: str) -> None:
    assert host.run(f"cat {path} > /dev/null") == ""
    assert "Permission denied" in host.try_run(f"cat {path}", user).stdout


def test_the_application_cannot_read_the_private_key(host):
    refuses(host, APP, "/etc/benchapp/tls/privkey.pem")


def test_nobody_else_has_a_file_among_those_that_a_server_writes_while_it_runs(host):
    """Such as one in the place of its pid file; both users have sockets in the directory above."""
    assert host.run("ls /run/benchapp/nginx/nginx.pid")
    for user, folder in ((APP, "nginx"), (WEB, "gunicorn")):
        assert "Permission denied" in host.try_run(f"touch /run/benchapp/{folder}/x", user).stdout


def test_a_unit_does_not_see_the_processes_of_other_users(host):
    web, app = host.main_process("benchapp-nginx"), host.main_process("benchapp-gunicorn")
    assert str(app) in host.run("ls /proc", WEB).split()
    assert str(app) not in host.run(f"nsenter -t {web} -m runuser -u {WEB} -- ls /proc").split()


def test_the_database_is_closed_to_others(host):
    modes = host.run("stat -c '%a %U' /var/lib/benchapp /var/lib/benchapp/site.sqlite3").splitlines()
    assert modes == [f"750 {APP}", f"640 {APP}"]


def test_only_what_binds_a_low_port_can(host):
    assert host.run("systemctl show -P CapabilityBoundingSet benchapp-nginx") == "cap_net_bind_service\n"
    assert host.run("systemctl show -P CapabilityBoundingSet benchapp-gunicorn") == "\n"


def test_after_the_check_the_site_still_takes_bodies(host):
    """Run as root, a server's own test hands its directories to another user."""
    checked = host.run("benchapp-check").splitlines()
    assert checked == ["ok    benchapp-gunicorn", "ok    benchapp-nginx", "ok    application"]
    body = host.root / "tmp" / "body"
    body.write_bytes(b"x" * 1_500_000)
    assert response_of(host, "/", "--data-binary", f"@{body}")[0] == 403


def test_stopping_the_target_waits_until_all_has_stopped_and_after_a_boot_it_serves(host):
    states = host.try_run("systemctl stop benchapp.target; systemctl is-active benchapp-gunicorn benchapp-nginx").stdout
    assert states.split() == ["inactive", "inactive"]
    boots(host)
    # Each unit says when it serves.
    host.run("systemctl start benchapp-gunicorn benchapp-nginx")
    assert response_of(host, "/healthz")[0] == 200


def hashed_style(host: Machine) -> str:
    return re.search(r"/static/[\w/.-]+\.[0-9a-f]{12}\.css", response_of(host, "/authors/")[1])[0]


def test_a_deploy_and_a_rollback_lose_no_request(host):
    style = host.root / SOURCE[1:] / "static/site.css"
    old = hashed_style(host)
    style.write_text(style.read_text() + "/* new */\n")
    noticed = deploys(host, "2")
    new = hashed_style(host)
    assert set(noticed["versions"]) == {"1", "2"}
    # The one that stood in has ended.
    assert host.try_run("systemctl is-active benchapp-gunicorn-standin").stdout == "inactive\n"
    # Both releases have the same packages.
    assert len(host.run("ls -d /srv/benchapp/venvs/*").split()) == 1
    assert old != new
    assert [response_of(host, path)[0] for path in (old, new)] == [200, 200]
    assert set(no_one_waits(host, "benchapp-rollback")["versions"]) == {"1", "2"}
    assert hashed_style(host) == old
    assert [response_of(host, path)[0] for path in (old, new)] == [200, 200]


def test_a_release_that_does_not_import_changes_nothing(host):
    views = host.root / SOURCE[1:] / "benchapp/views.py"
    right = views.read_text()
    views.write_text(f"{right}\nimport nosuch\n")
    commit(host, "broken")
    line = refused(host, f"benchapp-deploy {SOURCE}")
    views.write_text(right)
    commit(host, "repaired")
    assert line == "benchapp-deploy: check: ModuleNotFoundError: No module named 'nosuch'"


def test_a_release_whose_pages_fail_changes_nothing(host):
    """Its health page does not: it has no template."""
    base = host.root / SOURCE[1:] / "templates/base.html"
    right = base.read_text()
    base.write_text("{% nosuchtag %}" + right)
    commit(host, "no-pages")
    line = refused(host, f"benchapp-deploy {SOURCE}")
    base.write_text(right)
    commit(host, "pages")
    # Later versions of Django name the template before it.
    assert line.startswith("benchapp-deploy: its pages: GET /: TemplateSyntaxError: ") and "'nosuchtag'" in line


# Starts a deploy, and sends a signal while it imports the application, which hangs.
HANGING = """
benchapp-deploy {source} > /tmp/said 2>&1 & deploy=$!
until systemctl show 'benchapp-step-*' -P ExecStart | grep -q 'import config.wsgi'; do sleep 0.1; done
kill -{signal} $deploy
wait $deploy || echo "status $?"
"""


@pytest.mark.parametrize(("signal", "status"), [("TERM", 1), ("KILL", 137)])
def test_a_deploy_that_hangs_can_be_stopped(host, signal, status):
    """Nothing of it stays; of one that is killed the next command removes what does."""
    wsgi = host.root / SOURCE[1:] / "config/wsgi.py"
    right = wsgi.read_text()
    wsgi.write_text(f"{right}\nimport time\ntime.sleep(600)\n")
    commit(host, f"hangs-{signal}")
    served, before = version(host), host.run("readlink /srv/benchapp/current; ls /srv/benchapp/releases")
    done = host.run(HANGING.format(source=SOURCE, signal=signal))
    wsgi.write_text(right)
    commit(host, f"goes-on-{signal}")
    assert done.splitlines()[-1] == f"status {status}"
    if signal == "KILL":
        # No half release is one to go back to.
        assert "there is no such release any more" in host.try_run("benchapp-rollback .new").stdout
    assert host.run("flock -n /run/benchapp-deploy.lock echo free") == "free\n"
    assert (
        host.run("systemctl list-units --no-legend 'benchapp-step-*'; ls -A /srv/benchapp/releases | grep '^[.]' || :")
        == ""
    )
    assert host.run("readlink /srv/benchapp/current; ls /srv/benchapp/releases") == before
    assert version(host) == served


def test_a_full_disk_changes_nothing(host):
    release(host, "3")
    with host.full_disk():
        line = refused(host, f"benchapp-deploy {SOURCE}")
    assert line.startswith("benchapp-deploy: ") and "No space left on device" in line


def test_a_release_that_does_not_get_ready_is_taken_back(host):
    """It is in service until its page /readyz was requested in vain."""
    views = host.root / SOURCE[1:] / "benchapp/views.py"
    right = views.read_text()
    views.write_text(f"{right}\ndef readyz(request):\n    return HttpResponse(status=500)\n")
    commit(host, "not-ready")
    before = host.run("readlink /srv/benchapp/current; ls /srv/benchapp/releases")
    deploy = impatient_deploy(host)
    with visited(host) as noticed:
        done = host.try_run(deploy)
    views.write_text(right)
    commit(host, "mended")
    assert (noticed["failed"], noticed["versions"][-1]) == ([], "1")
    assert host.run("readlink /srv/benchapp/current; ls /srv/benchapp/releases") == before
    (line,) = done.stdout.splitlines()
    assert done.returncode == 1 and "does not serve, so it is not in service: curl: (22)" in line


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("flock /run/benchapp-deploy.lock benchapp-deploy x", "another deploy is running"),
        ("benchapp-deploy", "name a git repository, --back or --again"),
        ("benchapp-deploy /srv/nosuch", "the repository: fatal: repository '/srv/nosuch' does not exist"),
        (
            f"benchapp-deploy {SOURCE} nosuch",
            "the commit: error: pathspec 'nosuch' did not match any file(s) known to git",
        ),
        ("benchapp-rollback nosuch", "there is no such release any more: nosuch"),
    ],
)
def test_a_wrong_command_is_one_line(host, command, message):
    done = host.try_run(command)
    assert (done.stdout, done.returncode) == (f"benchapp-deploy: {message}\n", 1)


def request_ids(host: Machine, *options: str) -> list[str]:
    """The ids that the response of a page has which fails."""
    # Otherwise curl tries again after a 500.
    status, headers = response_of(host, "/fails/", "--retry", "0", "-o", "/dev/null", "-D", "-", *options)
    assert status == 500
    return re.findall(r"(?im)^x-request-id: (.*?)\r?$", headers)


def test_an_error_has_the_id_of_its_response_in_both_logs(host):
    sent = "abc12345-of-a-client"
    assert request_ids(host, "-H", f"X-Request-Id: {sent}") == [sent]
    (request_id,) = request_ids(host)
    for name in (sent, request_id):
        for log in ("cat /var/log/benchapp/access.log", "journalctl -u benchapp-gunicorn"):
            until(lambda log=log, name=name: name in host.run(log), f"{name} in {log}")


QUEUE = "/var/lib/benchapp/queue"
# Does the jobs of a directory, and writes down which release did each. A long one goes on until the worker is to stop.
WORKER = f"""
import pathlib, signal, time

QUEUE = pathlib.Path("{QUEUE}")
release = pathlib.Path.cwd().name
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
while not stopped:
    for job in sorted(QUEUE.glob("*.job"))[:1]:
        while job.stem.startswith("long") and not stopped:
            time.sleep(0.1)
        time.sleep(1)
        with (QUEUE / "done").open("a") as done:
            print(job.stem, release, file=done)
        job.unlink()
    time.sleep(0.1)
"""
# Writes down the release, except while its directory has a file of that name.
REPORT = f"""
import pathlib

queue = pathlib.Path("{QUEUE}")
assert not (queue / "fail").exists()
(queue / "report").write_text(pathlib.Path.cwd().name)
"""


def project_with_worker() -> UnderTest:
    """The kit's site with a worker and a job."""
    workers = {"queue": Worker("python queue_worker.py")}
    jobs = {"report": Job("python report.py")}
    project = kit().project
    described = structs.replace(project.description, workers=workers, jobs=jobs)
    return replace(kit(), project=structs.replace(project, description=described))


@pytest.fixture(scope="module")
def working(host):
    """The host when its project has got a worker and a job, and its web server other files; no visitor noticed."""
    for name, text in (("queue_worker.py", WORKER), ("report.py", REPORT)):
        (host.root / SOURCE[1:] / name).write_text(text)
    commit(host, "worker")
    host.run(f"install -d -o {APP} -g {APP} -m 0750 {QUEUE}")
    render(host, "nginx-gunicorn", "none", project_with_worker(), max_body_mb=1)
    with visited(host) as noticed:
        host.run(f"sh /srv/rendered/benchapp-install {SOURCE}")
    print(row(host, "benchapp-install with a new release", noticed))
    assert noticed["failed"] == []
    return host


def test_a_new_release_and_new_files_of_the_web_server_are_installed_at_once(working):
    body = working.root / "tmp" / "body"
    body.write_bytes(b"x" * 1_500_000)
    # A process of before the reload takes connections until those of the new files have started.
    until(lambda: response_of(working, "/", "--data-binary", f"@{body}")[0] == 413, "the limit of the new file")


def in_service(host: Machine) -> str:
    return host.run("basename $(readlink -f /srv/benchapp/current)").strip()


def test_a_job_queued_before_a_deploy_is_done_after_it_and_none_twice(working):
    done = working.root / QUEUE[1:] / "done"
    old = in_service(working)
    working.run(f"touch {QUEUE}/long-1.job {QUEUE}/short-2.job", APP)
    release(working, "5")
    working.run(f"benchapp-deploy {SOURCE}")
    new = in_service(working)
    until(lambda: "short" in done.read_text(), "the second job")
    assert old != new
    assert done.read_text().splitlines() == [f"long-1 {old}", f"short-2 {new}"]
    working.run("systemctl start benchapp-job-report")
    assert working.run(f"cat {QUEUE}/report") == new


def status(host: Machine) -> tuple[int, dict[str, str]]:
    """The exit status of benchapp-status, and the state of each part."""
    done = host.try_run("benchapp-status --json")
    checks = json.loads(done.stdout)["checks"]
    return done.returncode, {name: check["state"] for name, check in checks.items()}


def test_monitoring_sees_what_is_wrong(working):
    working.write("/etc/benchapp/alert", '#!/bin/sh\necho "$1" >> /srv/alerts\n', 0o755)
    working.run("systemctl start benchapp-backup benchapp-job-report")
    code, well = status(working)
    # Those that wait depend on the day.
    updates = well["updates"]
    assert code == {"ok": 0, "warning": 1, "unknown": 3}[updates]
    assert set({**well, "updates": "ok"}.values()) == {"ok"}
    working.run(f"touch {QUEUE}/fail", APP)
    assert working.try_run("systemctl start benchapp-job-report").returncode == 1
    assert status(working) == (2, {**well, "jobs": "critical"})
    until(lambda: "benchapp-job-report.service" in working.try_run("cat /srv/alerts").stdout, "an alert")
    working.run(f"rm {QUEUE}/fail; systemctl start benchapp-job-report; systemctl stop benchapp-worker-queue")
    assert status(working) == (2, {**well, "units": "critical"})
    working.run("systemctl start benchapp-worker-queue")
    assert status(working) == (code, well)
