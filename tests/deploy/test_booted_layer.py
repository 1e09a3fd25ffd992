"""On a booted host: one server that is web server and application, behind Varnish and HAProxy, which terminates TLS."""

from __future__ import annotations

import pytest

from bench import programs
from tests.deploy.installing import NAME, RENEWED, SOURCE, blocks, boots, install, prepare, release, render, response_of
from tests.deploy.machine import Machine, booted
from tests.waiting import until

pytestmark = [pytest.mark.hosts, pytest.mark.servers]

APP = "benchapp-app"
LOG = "/var/log/benchapp/access.log"


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    for name in ("varnishd", "haproxy", "apache2"):
        if programs.find([name]) is None:
            pytest.skip(f"program not installed: {name}")
    with booted(tmp_path_factory.mktemp("machine")) as machine:
        prepare(machine, (), modwsgi=True)
        install(machine, "apache-modwsgi", "varnish")
        yield machine


def status(host: Machine, path: str) -> int:
    return response_of(host, path)[0]


def test_after_a_boot_it_serves(host):
    """The log belongs to the user of the unit that writes it: Apache runs as the application's."""
    boots(host)
    until(lambda: status(host, "/healthz") == 200, "a page after the boot")
    assert host.run(f"stat -c %U {LOG}").strip() == APP
    assert host.run("systemctl show -P NRestarts benchapp-apache").strip() == "0"
    assert "FAIL" not in host.run("benchapp-check")


def test_tls_ends_before_the_cache(host):
    """With the certificate that certbot handed over, over HTTP/2; and plain HTTP leads there."""
    shown = response_of(host, "/", "-o", "/dev/null", "-D", "-", "--http2")[1]
    assert shown.startswith("HTTP/2 200")
    assert "strict-transport-security: max-age=300" in shown
    served = f"openssl s_client -connect 127.0.0.1:443 -servername {NAME} < /dev/null 2> /dev/null"
    assert host.run(f"{served} | openssl x509 -noout -serial") == host.run(f"openssl x509 -noout -serial -in {RENEWED}")
    plain = f"curl -s -o /dev/null -w '%{{http_code}} %{{redirect_url}}' --resolve {NAME}:80:127.0.0.1 http://{NAME}/a"
    assert host.run(plain) == f"301 https://{NAME}/a"
    assert response_of(host, "/", "-H", "Host: other.example")[0] == 400


def test_the_check_says_which_log_is_not_its_writers(host):
    host.run(f"chown benchapp-web {LOG}")
    done = host.try_run("benchapp-check")
    host.run("systemd-tmpfiles --create benchapp.conf")
    assert (done.returncode, f"FAIL  {LOG}: it is not {APP}'s" in done.stdout) == (1, True)
    assert host.run("benchapp-check").count("FAIL") == 0


def test_after_a_change_of_the_configuration_new_processes_have_taken_over(host):
    """As the note says it: a second Apache serves while the first restarts."""
    before = host.main_process("benchapp-apache")
    note = render(host, "apache-modwsgi", "varnish", client_timeout_s=21)
    for block in blocks(note.partition("\n## After a change of the configuration")[2]):
        host.run(block)
    until(lambda: status(host, "/healthz") == 200, "a page after the change")
    assert host.main_process("benchapp-apache") != before
    assert host.try_run("systemctl is-active benchapp-apache-standin").stdout == "inactive\n"


def test_a_deploy_and_a_rollback_end_with_a_site_that_serves(host):
    before = host.run("readlink /srv/benchapp/current")
    release(host, "2")
    for command in (f"benchapp-deploy {SOURCE}", "benchapp-rollback"):
        assert host.run(command).endswith(" serves\n")
        assert status(host, "/healthz") == 200
    assert host.run("readlink /srv/benchapp/current") == before
