"""On a booted host: two sites behind Debian's Caddy, one of which reaches PostgreSQL through PgBouncer."""

from __future__ import annotations

import re

import pytest

from bench import paths
from bench.serve.catalog import catalog, values
from bench.serve.production import one_host
from tests.cases import for_files
from tests.deploy.installing import FEW, SERVERS, SOURCE, prepare
from tests.deploy.machine import Machine, booted
from tests.skips import needs

pytestmark = [pytest.mark.hosts, pytest.mark.servers]

PAGE = (paths.KIT / "docs" / "how-to" / "several-sites.md").read_text("utf-8")
# The file of values that the page shows.
SHOP = re.search(r"```toml\n(.*?)```", PAGE.replace("\n   ", "\n"), re.S)[1]
# The file of the server in front that it shows.
CADDYFILE = re.search(r"```\n   (shop\.example\.org \{.*?)```", PAGE, re.S)[1]
STACKS = {"shop": "nginx-gunicorn", "blog": "nginx-uwsgi"}
PORTS = {"shop": 8100, "blog": 8200}
POOL = 2
# Starts the cluster that Debian's packages have made, or makes one.
POSTGRESQL = """
[ "$(pg_lsclusters --no-header)" ] || pg_createcluster "$(ls /usr/lib/postgresql | tail -n 1)" main
set -- $(pg_lsclusters --no-header | head -n 1)
pg_ctlcluster "$1" "$2" start
"""
ASK = "curl -sk -o /dev/null --resolve {name}.example.org:443:127.0.0.1 https://{name}.example.org{path}"


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    needs("pgbouncer", "pg_ctlcluster", "nginx", "caddy")
    with booted(tmp_path_factory.mktemp("machine")) as machine:
        prepare(machine, (*SERVERS, "psycopg2-binary"))
        machine.run(POSTGRESQL)
        own = re.sub(r"(?m)^ *(\w+\.example\.org) \{", r"\1 {\ntls internal", CADDYFILE)
        machine.write("/etc/caddy/Caddyfile", f"{{\nskip_install_trust\n}}\n{own}")
        machine.run("systemctl start caddy")
        install(machine, "shop", "postgresql:///shop", pool="pgbouncer", pool_size=POOL)
        install(machine, "blog", "sqlite:////var/lib/blog/site.sqlite3")
        yield machine


def install(machine: Machine, name: str, database: str, **changes: object) -> None:
    """Follow the page, and the install note of a site."""
    text = SHOP.replace("shop", name).replace("8100", str(PORTS[name])).replace("8101", str(PORTS[name] + 1))
    own = machine.root / f"srv/{name}.toml"
    own.write_text(text)
    chosen = values.read_own(own, catalog.read().values).changed({**FEW, **changes})
    one_host.write(for_files(STACKS[name], "none", chosen), machine.root / "srv" / name)
    machine.run(f"sh /srv/{name}/{name}-install")
    machine.run(f"echo DATABASE_URL={database} >> /etc/{name}/secrets.env")
    if database.startswith("postgresql"):
        machine.run(f"runuser -u postgres -- createuser {name}-app")
        machine.run(f"runuser -u postgres -- createdb --owner={name}-app {name}")
    machine.run(f"{name}-deploy {SOURCE}")


def status(machine: Machine, name: str, path: str = "/login/") -> str:
    """The status of a page, for a visitor."""
    command = ASK.format(name=name, path=path)
    return machine.run(f"{command} -w '%{{http_code}}' || true")


def test_one_site_serves_whatever_becomes_of_the_other(host):
    assert [status(host, name) for name in STACKS] == ["200", "200"]
    # Debian's Caddy is for both; its Nginx would be for none.
    assert host.run("systemctl is-active caddy").strip() == "active"
    assert host.try_run("systemctl is-enabled nginx").stdout.strip() == "masked"
    before = host.main_process("blog-uwsgi"), host.main_process("blog-nginx")
    assert host.run(f"shop-deploy {SOURCE}").endswith(" serves\n")
    host.run("systemctl stop shop.target")
    assert (host.main_process("blog-uwsgi"), host.main_process("blog-nginx")) == before
    assert status(host, "blog") == "200"
    host.run("systemctl start shop.target")
    assert host.run("systemctl --failed --plain --no-legend").strip() == ""
    for name in STACKS:
        assert {line.split()[0] for line in host.run(f"{name}-check").splitlines()} == {"ok"}


def test_the_application_reaches_its_database_through_pgbouncer(host):
    requests = " & ".join([ASK.format(name="shop", path="/readyz")] * 12)
    host.run(f"{requests}; wait")
    count = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'shop-app'"
    assert 0 < int(host.run(f'runuser -u postgres -- psql -At -c "{count}"')) <= POOL
    host.run("systemctl stop shop-pgbouncer")
    assert status(host, "shop", "/readyz") == "503"
    host.run("systemctl start shop-pgbouncer")
    assert status(host, "shop", "/readyz") == "200"
    # Commands go past it.
    host.run("systemctl stop shop-pgbouncer; shop-manage migrate --check; systemctl start shop-pgbouncer")
