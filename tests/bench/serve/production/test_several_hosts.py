"""The files of several hosts: those of one host except for addresses, and refusals of what cannot be split."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
from pathlib import Path

import pytest
from msgspec import structs

from bench import programs
from bench.errors import BenchError
from bench.serve.catalog import catalog, compatibility
from bench.serve.production import one_host, split
from bench.serve.production import several_hosts as fleet
from bench.serve.production.inventory import Host, Inventory
from tests.cases import for_files, production

ADDRESSES = {"front1": "10.0.0.10", "web1": "10.0.0.11", "web2": "10.0.0.12", "db1": "10.0.0.20", "cache1": "10.0.0.21"}
GROUPS = {"front1": ("front",), "web1": ("web",), "web2": ("web",), "db1": ("db", "cache")}
# What a host's files have in place of one host's.
OWN = {"benchapp-firewall.service", "firewall.nft", "postgresql.conf", "pg_hba.conf", "rendered"}
OWN |= {"benchapp-database", "benchapp-ready", "postgresql.service.conf"}
# They name all units of their host.
OF_UNITS = ("benchapp.target", "benchapp-alert@.service", "benchapp-check", "benchapp-deploy", "benchapp-updated")
# Each host sends requests to its own servers.
OF_SERVERS = ("benchapp-deploy", "benchapp-status")
# The playbook does it on several.
OF_ONE_HOST = {"INSTALL.md", "benchapp-install", "nftables.conf"}


def hosts(groups: dict[str, tuple[str, ...]] = GROUPS) -> Inventory:
    members = (Host(name, ADDRESSES[name], of, ADDRESSES[name]) for name, of in groups.items())
    return Inventory(Path("hosts.ini"), tuple(members))


def rendered(folder: Path, stack: str, layer: str, groups=GROUPS, **changes: object) -> Path:
    fleet.write(production(stack, layer, **changes), hosts(groups), folder)
    return folder


def refused(tmp_path: Path, stack: str, layer: str, groups=GROUPS, **changes: object) -> str:
    with pytest.raises(BenchError) as raised:
        rendered(tmp_path / "out", stack, layer, groups, **changes)
    assert not (tmp_path / "out").exists() and "\n" not in str(raised.value)
    return str(raised.value)


def files(folder: Path) -> dict[str, str]:
    """The texts by name, without the directories that only one host or only several have."""
    named = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    of_folder = r"^etc/(?:apt/)?(\w+)(?:\.conf)?\.d/benchapp(?:\.conf)?$"
    named = {re.sub(of_folder, r"\1.conf", name): text for name, text in named.items()}
    own = r"^(etc/benchapp|etc/systemd/system|usr/local/sbin|systemd|timers|database)/(database/)?"
    return {re.sub(own, "", name): text for name, text in named.items()}


def conf(out: Path, host: str) -> Path:
    """The configuration of a host."""
    return out / "hosts" / host / "etc/benchapp"


def without_addresses(text: str) -> list[str]:
    """The lines of a file with one word for every address, and for a list of those in separate lines."""
    known = r"(unix:)?/run/benchapp/(uwsgi|gunicorn|memcached|varnish-purge)\.sock(,mode=0660)?"
    text = re.sub(rf"(http://)?10\.0\.0\.\d+:\d+|{known}", "ADDRESS", text)
    # Of several instances one is chosen, and one that fails is left out.
    text = re.sub(r"(?s)(upstream app \{\n).*?( +server )", r"\1\2", text)
    text = re.sub(r"(?s)\n    # A request is retried if its connection.*?next_upstream_timeout 6s;", "", text)
    lines = re.sub(r"ADDRESS max_fails=[03]", "ADDRESS", text).splitlines()
    return [
        line for number, line in enumerate(lines) if number == 0 or line != lines[number - 1] or "ADDRESS" not in line
    ]


@pytest.mark.parametrize(
    ("stack", "layer", "changes"),
    [
        ("nginx-uwsgi", "nginx-memcached", {}),
        ("nginx-gunicorn", "page-cache", {}),
        ("nginx-uwsgi", "varnish", {"listener": "behind"}),
    ],
)
def test_the_files_are_those_of_one_host_except_addresses(tmp_path, stack, layer, changes):
    one = one_host.write(production(stack, layer, **changes), tmp_path / "one") and files(tmp_path / "one")
    several = rendered(tmp_path / "several", stack, layer, **changes) / "hosts"
    every = {name: files(several / name) for name in GROUPS if (several / name).exists()}
    assert one.keys() - OF_ONE_HOST == {name for texts in every.values() for name in texts} - OWN
    for host, texts in every.items():
        for name in texts.keys() - OWN:
            if name in OF_SERVERS:
                continue
            if name in OF_UNITS:
                # Only those of this host's units.
                assert set(re.findall(r"[\w.@-]+", texts[name])) <= set(re.findall(r"[\w.@-]+", one[name])), (
                    f"{host} {name}"
                )
            elif name == "tmpfiles.conf":
                # Only the logs of this host's servers.
                assert set(texts[name].splitlines()) <= set(one[name].splitlines()), host
            elif not name.endswith("memcached.service"):
                assert without_addresses(texts[name]) == without_addresses(one[name]), f"{host} {name}"


def test_a_server_of_several_instances_has_a_port_for_each(tmp_path):
    out = rendered(tmp_path / "out", "nginx-cherrypy", "none", processes=2)
    units = (out / "hosts/web1").rglob("*.socket")
    addresses = sorted(re.findall(r"ListenStream=(.+)", path.read_text())[0] for path in units)
    assert addresses == ["10.0.0.11:8001", "10.0.0.11:8002"]


@pytest.mark.servers
def test_nftables_takes_the_firewall(tmp_path):
    nft = programs.find(["nft"])
    if nft is None:
        pytest.skip("program not installed: nft")
    out = rendered(tmp_path / "out", "nginx-uwsgi", "nginx-memcached")
    done = subprocess.run([nft, "-c", "-f", conf(out, "db1") / "firewall.nft"], capture_output=True, text=True)
    if "Operation not permitted" in done.stderr:
        pytest.skip("nft checks a file only for root")
    assert done.returncode == 0, done.stderr


def test_the_site_purges_a_cache_on_another_host_by_its_door(tmp_path):
    out = rendered(tmp_path / "out", "nginx-uwsgi", "varnish", listener="behind")
    assert "CACHING_VARNISH_PURGE_URL=http://10.0.0.10:6081\n" in (conf(out, "web1") / "site.env").read_text()
    unit = out / "hosts/front1/etc/systemd/system/benchapp-varnish.service"
    assert "-a purge=10.0.0.10:6081 " in unit.read_text()
    assert "dport 6081 ip saddr != { 10.0.0.11, 10.0.0.12, }" in (conf(out, "front1") / "firewall.nft").read_text()


def test_one_web_host_has_what_the_inventory_names_no_host_for(tmp_path):
    groups = {"web1": ("web",)}
    one = one_host.write(production("uwsgi", "fragments"), tmp_path / "one") and files(tmp_path / "one")
    web_files = files(rendered(tmp_path / "out", "uwsgi", "fragments", groups) / "hosts/web1")
    assert web_files == {**{name: one[name] for name in one.keys() - OF_ONE_HOST}, "rendered": web_files["rendered"]}
    assert not (tmp_path / "out" / "drained").exists()


def test_a_stack_that_cannot_be_split_is_refused_with_those_that_can(tmp_path):
    message = refused(tmp_path, "gunicorn", "none")
    assert message.startswith(
        "gunicorn: not over several hosts: its one server is web server and application in one; stacks that can: nginx-"
    )
    message = refused(tmp_path, "lighttpd-fastcgi", "none")
    assert message.startswith(
        "lighttpd-fastcgi: not over several hosts: lighttpd: its files name one application server, "
    )


@pytest.mark.parametrize("stack", [name for name, it in catalog.read().stacks.items() if not split.why_single_host(it)])
def test_a_stack_that_can_be_split_has_no_address_of_one_host(tmp_path, stack):
    out = rendered(tmp_path / "out", stack, "none")
    inner = catalog.read().stacks[stack].servers[0].name
    front_conf = (conf(out, "front1") / "nginx.conf").read_text()
    assert "10.0.0.11:8001" in front_conf and f"/{inner}.sock" not in front_conf
    units = [path.read_text() for path in (out / "hosts/web1").rglob("*") if path.is_file()]
    assert any(re.search("10.0.0.11:8001|Listen 10.0.0.11|--host=10.0.0.11 --port 8001", text) for text in units)
    assert not [text for text in units if f"/{inner}.sock" in text]


@pytest.mark.parametrize("layer", [name for name, it in catalog.read().layers.items() if it.one_host])
def test_a_layer_that_is_of_one_host_is_refused_with_the_reason(tmp_path, layer):
    stack = next(
        name
        for name, it in catalog.read().stacks.items()
        if not compatibility.layer_problem(it, catalog.read().layers[layer])
    )
    reason = catalog.read().layers[layer].one_host
    assert refused(tmp_path, stack, layer) == (
        f"layer {layer}: not over several hosts: {reason}; "
        "layers that can: none, apache-cache, fragments, nginx-memcached, nginx-microcache, page-cache, "
        "site-middleware, uwsgi-cache, varnish, view-cache"
    )


@pytest.mark.parametrize("group", ["front", "db", "cache"])
def test_several_web_hosts_share_what_the_stack_needs(tmp_path, group):
    groups = {name: tuple(set(of) - {group}) for name, of in GROUPS.items()}
    message = refused(tmp_path, "nginx-uwsgi", "fragments", groups)
    assert message == f"hosts.ini: 2 web hosts, and none in group {group}; name one that serves them all"


def test_a_front_that_is_one_of_several_web_hosts_is_refused(tmp_path):
    groups = {"web1": ("web", "front"), "web2": ("web",), "db1": ("db", "cache")}
    assert refused(tmp_path, "nginx-uwsgi", "none", groups) == (
        "hosts.ini: web1 is in group front and one of 2 web hosts: a deploy to it would stop the front; "
        "take it out of group web"
    )


def test_a_host_that_the_layer_does_not_use_is_not_touched(tmp_path):
    groups = {**GROUPS, "db1": ("db",), "cache1": ("cache",)}
    out = rendered(tmp_path / "out", "nginx-uwsgi", "none", groups)
    runs = {path.stem: json.loads(path.read_text())["runs"] for path in (out / "host_vars").iterdir()}
    assert runs == {"front1": True, "web1": True, "web2": True, "db1": True, "cache1": False}
    assert not (out / "hosts/cache1").exists()


def test_the_front_ends_tls_before_the_cache(tmp_path):
    out = rendered(tmp_path / "out", "nginx-uwsgi", "varnish")
    front = {path.name for path in (out / "hosts/front1").rglob("*")}
    assert {"tls.cfg", "varnish.vcl", "nginx.conf", "benchapp-haproxy-tls.service", "benchapp-certificate"} <= front
    variables = json.loads((out / "host_vars/front1.json").read_text())
    assert variables["tls"] and {"haproxy", "varnish", "nginx"} <= set(variables["distribution_services"])
    assert not any("haproxy" in path.name for path in (out / "hosts/web1").rglob("*"))


def test_without_tls_somebody_else_has_to_end_it(tmp_path):
    """A server of one's own that has none."""
    case = production("nginx-uwsgi", "none")
    *inner, front = case.stack.servers
    stack = structs.replace(case.stack, servers=(*inner, structs.replace(front, tls=False)))
    with pytest.raises(BenchError, match="nginx does not terminate TLS, and no server before it is on its host"):
        fleet.write(dataclasses.replace(case, stack=stack), hosts(), tmp_path / "out")


def test_values_without_the_places_of_a_host_are_refused(tmp_path):
    with pytest.raises(BenchError, match="--inventory needs the places of a host, which bench lacks"):
        fleet.write(for_files("nginx-uwsgi"), hosts(), tmp_path)


def test_web_server_and_application_on_two_hosts_need_no_common_user(tmp_path):
    out = rendered(tmp_path / "out", "nginx-uwsgi", "nginx-microcache")
    (unit,) = (out / "hosts/front1").rglob("benchapp-nginx.service")
    assert "User=benchapp-web\n" in unit.read_text()
