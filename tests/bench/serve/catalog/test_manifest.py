"""Manifests: a fault in one is reported in one line that names the file."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from bench import paths, programs
from bench.errors import BenchError
from bench.serve.catalog import catalog, compatibility, manifest
from bench.serve.deployment import render
from bench.serve.deployment.case import CannotRun, Case, resolve
from bench.verify import suite
from tests.cases import bare, kit, resolved

GOOD = """
title = "T"
about = "A"
[[server]]
name = "x"
programs = ["x"]
config = "x.conf"
speaks = "http"
start = ["{{ program }}"]
"""


def stack_file(tmp_path, text):
    folder = tmp_path / "mine"
    folder.mkdir()
    path = folder / "stack.toml"
    path.write_text(text)
    return path


def test_a_stack_of_one_file_needs_nothing_else(tmp_path):
    stack = manifest.read_stack(stack_file(tmp_path, GOOD))
    assert stack.name == "mine"
    assert [server.name for server in stack.servers] == ["x"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("title = ", "not valid TOML"),
        (GOOD + 'colour = "red"\n', "unknown key 'colour'"),
        (GOOD.replace('title = "T"', ""), "stack needs 'title'"),
        (GOOD.replace('programs = ["x"]', 'programs = "x"'), "programs must be a list, not a string"),
        (GOOD.replace('speaks = "http"', ""), "server needs 'speaks'"),
        (GOOD + 'graceful = "SOON"\n', "graceful is 'SOON'; use a signal's name, such as QUIT"),
        (GOOD + 'listen = "pipe"\n', "listen is 'pipe'; use one of tcp, unix"),
        ('title = "T"\nabout = "A"\n', "it has no [[server]]"),
        (GOOD + GOOD[GOOD.index("[[") :], "two servers have the same name"),
        (GOOD + "[values]\nprocesses = 1\n", "[values] that differ need a `reason`"),
        (GOOD + '[[declares]]\ncheck = "x"\n', "declaration needs 'reason'"),
    ],
)
def test_a_wrong_stack_is_refused_in_one_line(tmp_path, text, says):
    path = stack_file(tmp_path, text)
    with pytest.raises(BenchError) as caught:
        manifest.read_stack(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert says in message
    assert "\n" not in message


def test_a_common_server_is_completed_by_the_stack():
    stack = catalog.read().stacks["nginx-uwsgi"]
    inner, outer = stack.servers
    assert (inner.listen, outer.listen) == ("unix", "tcp")
    assert inner.programs == catalog.read().stacks["uwsgi"].servers[0].programs


def variant_of(tmp_path, base: str, text: str = ""):
    """The stack.toml of a stack `mine` with that base, among copies of the project's own stacks."""
    shutil.copytree(paths.DEPLOY / "stacks", tmp_path, dirs_exist_ok=True)
    return stack_file(tmp_path, f'base = "{base}"\ntitle = "T"\nabout = "A."\n{text}')


def test_a_variant_takes_over_what_its_base_says_and_its_own_keys_win(tmp_path):
    own = '[env]\nMORE = "1"\n[[server]]\nname = "gunicorn"\nlisten = "tcp"\n'
    stack = manifest.read_stack(variant_of(tmp_path, "nginx-gunicorn-gthread", own))
    base = catalog.read().stacks["nginx-gunicorn-gthread"]
    assert stack.env == {**base.env, "MORE": "1"}
    assert (stack.values, stack.reason) == (base.values, base.reason)
    assert [server.name for server in stack.servers] == ["gunicorn", "nginx"]
    assert (stack.servers[0].listen, stack.servers[0].config) == ("tcp", "gunicorn.conf.py")
    assert [folder.name for folder in stack.folders] == ["mine", "nginx-gunicorn-gthread", "nginx-gunicorn"]
    assert stack.title == "T"


def test_a_variant_has_a_separate_title(tmp_path):
    path = variant_of(tmp_path, "nginx-uwsgi")
    path.write_text('base = "nginx-uwsgi"\n')
    with pytest.raises(BenchError, match="stack needs 'title'"):
        manifest.read_stack(path)


@pytest.mark.parametrize(
    ("base", "more", "message"),
    [
        ("nosuch", "", "base = 'nosuch': no such stack; there are: apache-modwsgi, "),
        ("../stacks/uwsgi", "", "base = '../stacks/uwsgi': no such stack; there are: "),
        ("mine", "", "its base leads back to itself: mine -> mine"),
        (
            "nginx-uwsgi",
            '[[server]]\nname = "granian"\n',
            "[[server]] 'granian': nginx-uwsgi has no such server; it has uwsgi, nginx",
        ),
        ("nginx-uwsgi", "[[server]]\n", "[[server]] None: nginx-uwsgi has no such server; it has uwsgi, nginx"),
    ],
)
def test_a_wrong_base_is_refused_in_one_line(tmp_path, base, more, message):
    path = variant_of(tmp_path, base, more)
    with pytest.raises(BenchError) as caught:
        manifest.read_stack(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_bases_in_a_circle_are_refused_in_one_line(tmp_path):
    path = variant_of(tmp_path, "nginx-uwsgi")
    other = tmp_path / "nginx-uwsgi" / "stack.toml"
    other.write_text('base = "mine"\n')
    with pytest.raises(BenchError) as caught:
        manifest.read_stack(path)
    assert str(caught.value) == f"{other}: its base leads back to itself: mine -> nginx-uwsgi -> mine"


def test_an_era_is_inherited_and_must_be_known(tmp_path):
    path = variant_of(tmp_path, "nginx-scgi")
    assert manifest.read_stack(path).era == "historic"
    path = variant_of(tmp_path / "other", "nginx-uwsgi", 'era = "old"\n')
    with pytest.raises(BenchError) as caught:
        manifest.read_stack(path)
    assert str(caught.value) == f"{path}: era is 'old'; use historic, or leave it out"


@pytest.mark.parametrize("name", catalog.read().stacks)
def test_every_stack_is_a_folder_that_explains_itself(name):
    stack = catalog.read().stacks[name]
    assert stack.title
    assert stack.about.endswith(".")
    files = {server.name: render.server_files(server, bare(stack)) for server in stack.servers}
    for server in stack.servers:
        if server.config:
            assert server.config in files[server.name], f"{name} has no {server.config}"
            assert server.check, f"{name}: {server.name} has no configuration check"


@pytest.mark.parametrize("name", catalog.read().layers)
def test_every_layer_names_services_that_exist(name):
    layer = catalog.read().layers[name]
    for cache in ("memcached", "redis"):
        services = set(compatibility.services_of(layer, {"cache": cache}))
        assert services <= set(catalog.read().services)
        assert services & {cache} <= set(layer.without) or not layer.without


def test_unknown_names_come_with_the_nearest():
    with pytest.raises(BenchError, match=r"no stack called 'nginx-uwsgy'; did you mean nginx-uwsgi\?"):
        catalog.read().stack("nginx-uwsgy")
    with pytest.raises(BenchError, match="no layer called 'zzz'; `python -m bench list` prints all"):
        catalog.read().joined_layers("zzz")
    with pytest.raises(BenchError, match="a layer is named twice"):
        catalog.read().joined_layers("fragments+fragments")
    with pytest.raises(BenchError, match="none cannot be joined with another layer"):
        catalog.read().joined_layers("none+fragments")
    for name in ("", "+", "fragments+", "+fragments", "fragments++varnish"):
        message = f"layer {name!r}: a name is missing; write one layer, or several with + between them"
        with pytest.raises(BenchError, match=re.escape(message)):
            catalog.read().joined_layers(name)


def test_a_layer_fits_that_has_a_file_of_a_server():
    layer = catalog.read().layers["staticgenerator"]
    assert compatibility.layer_problem(catalog.read().stacks["nginx-gunicorn"], layer) == ""
    reason = compatibility.layer_problem(catalog.read().stacks["gunicorn"], layer)
    servers = "apache or cherokee or lighttpd or nginx"
    assert servers in reason


def test_a_declaration_of_a_layer_holds_only_with_its_server():
    layer = catalog.read().layers["staticgenerator"]
    one = manifest.Declaration("whole-pages", "it looks before it opens", server="cherokee")
    layer = msgspec.structs.replace(layer, declares=(one,))
    stacks = catalog.read().stacks
    assert one in compatibility.declared((layer,), stacks["cherokee-uwsgi"])
    assert one not in compatibility.declared((layer,), stacks["nginx-uwsgi"])
    assert one not in compatibility.declared((layer,))


def test_a_declaration_of_a_server_holds_unless_one_before_it_makes_it_good():
    known = catalog.read()
    one = manifest.Declaration("no-host", "it takes any", unless_behind=("nginx", "varnish"))
    always = manifest.Declaration("two-lengths", "it takes both")

    def declared(stack: str, layer: str) -> tuple[manifest.Declaration, ...]:
        original = known.stacks[stack]
        inner = msgspec.structs.replace(original.servers[0], declares=(one, always))
        changed = msgspec.structs.replace(original, servers=(inner, *original.servers[1:]))
        return compatibility.declared((known.layers[layer],), changed)

    assert {one, always} <= set(declared("waitress", "none"))
    assert one not in declared("nginx-waitress", "none") and always in declared("nginx-waitress", "none")
    assert one not in declared("waitress", "varnish")


def test_servers_and_layers_declare_checks_and_servers_that_there_are():
    known = catalog.read()
    names = {server.name for it in (*known.stacks.values(), *known.layers.values()) for server in it.servers}
    for stack in known.stacks.values():
        for server in stack.servers:
            suite.require_checks(item.check for item in server.declares)
            assert {name for item in server.declares for name in item.unless_behind} <= names


def test_a_missing_program_is_a_skip_with_its_name(monkeypatch):
    monkeypatch.setattr(programs, "find", lambda names, search=(), venvs=(): None)
    skip = resolve(kit(), "nginx-uwsgi")
    assert isinstance(skip, CannotRun)
    install = "`pipx install --force --include-deps './benchapp[servers]'` installs it from the clone"
    others = "with your other extras in the brackets"
    assert skip.reason == f"program not installed: uwsgi; {install}, {others}"
    skip = resolve(kit(), "lighttpd-flup")
    assert isinstance(skip, CannotRun)
    assert "'./benchapp[flup]'" in skip.reason


def test_what_installs_a_program_is_printed_for_each():
    known = catalog.read()
    servers = {server.name: server for stack in known.stacks.values() for server in stack.servers}
    for item in (*servers.values(), *known.services.values()):
        assert "install `" not in compatibility.how_to_install(item), item.name


def notes_of_layers(case: Case) -> tuple[str, ...]:
    """The notes without the stack's own reason."""
    return tuple(note for note in case.notes if not note.startswith(f"{case.stack.name}: "))


def test_a_layer_without_its_service_says_what_it_uses_instead(monkeypatch):
    monkeypatch.setattr(compatibility, "missing_programs", lambda service: ["memcached"])
    case = resolved("gunicorn", "fragments")
    assert case.services == ()
    assert case.env["CACHE_URL"].startswith("locmemcache://")
    assert notes_of_layers(case) == (
        "fragments: memcached is not installed: each worker process has a separate cache in memory (locmem)",
    )
    layer = catalog.read().layers["page-cache"]
    (without,) = resolved("gunicorn", "page-cache").layers
    assert (without.invalidation, without.coalesces) == ("", ""), "caches of processes know nothing of each other"
    assert layer.invalidation


@pytest.mark.parametrize("name", ["fragments", "site-middleware", "view-cache"])
def test_django_s_own_caches_promise_neither_invalidation_nor_coalescing(name):
    layer = catalog.read().layers[name]
    assert (layer.invalidation, layer.coalesces, layer.hosts_expire) == ("", "", True)
    assert {"told-of-writes", "stampede-slow"} <= {item.check for item in layer.declares}
    assert {"caching-service", "caching-service-hangs"} <= {item.fault for item in layer.breaks}


@pytest.mark.parametrize(
    ("url", "invalidated"),
    [
        ("locmemcache://x", False),
        ("", False),  # the default of the site is a cache of each process, too
        ("filecache:///tmp/x", True),
        ("dbcache://x", True),
        ("redis://127.0.0.1:6379", True),
    ],
)
def test_a_cache_url_needs_no_service_and_is_invalidated_if_it_can_be(url, invalidated, monkeypatch):
    monkeypatch.setattr(compatibility, "missing_programs", lambda service: ["memcached"])
    case = resolved("gunicorn", "page-cache", env={"CACHE_URL": url})
    assert case.services == ()
    assert notes_of_layers(case) == ("page-cache: it uses the cache of the given CACHE_URL",)
    (layer,) = case.layers
    assert (bool(layer.invalidation), bool(layer.coalesces)) == (invalidated, invalidated)


def test_a_cache_url_leaves_the_service_that_a_server_needs(monkeypatch):
    monkeypatch.setattr(programs, "find", lambda names, search=(), venvs=(): Path("/bin/true"))
    case = resolved("nginx-uwsgi", "nginx-memcached+fragments", env={"CACHE_URL": "dbcache://x"})
    assert [service.name for service in case.services] == ["memcached"]
    assert case.notes == ("fragments: it uses the cache of the given CACHE_URL",)


def test_a_variant_is_another_stack_with_other_values():
    stacks = catalog.read().stacks
    variant = catalog.read().stack("nginx-cherrypy@processes=25,threads=2")
    assert variant.name == "nginx-cherrypy@processes=25,threads=2"
    assert variant.values == {"processes": 25, "threads": 2}
    assert variant.reason == stacks["nginx-cherrypy"].reason
    assert variant.folders == stacks["nginx-cherrypy"].folders
    assert catalog.read().stack("nginx-gunicorn@processes=25").reason == ""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("uwsgi@workers=3", "stack uwsgi@workers=3: workers: no such value; deploy/values/bench.toml has processes, "),
        ("uwsgi@processes", "stack uwsgi@processes: processes: write it as NAME=VALUE, for example processes=5"),
        ("uwsgi@processes=0", "stack uwsgi@processes=0: processes=0: use a whole number, 1 or more"),
        ("uwsgi@processes=abc", "stack uwsgi@processes=abc: processes=abc: use a whole number, 1 or more"),
        ("uwsgi@listener=foo", "stack uwsgi@listener=foo: listener=foo: use plain or tls"),
        ("uwsgi@cache=foo", "stack uwsgi@cache=foo: cache=foo: use memcached or redis"),
        ("uwsgi@io_cache=2", "stack uwsgi@io_cache=2: io_cache=2: use 0 or 1"),
        ("uwsgi@http_port=65536", "stack uwsgi@http_port=65536: http_port=65536: use a whole number, 65535 at most"),
        ("uwsgi@server_names=", "stack uwsgi@server_names=: server_names=: use one host name or more, "),
        ("uwsgi@server_names=a;b", "stack uwsgi@server_names=a;b: server_names=a;b: use one host name or more, "),
        ("uwsgi@access_log=a b", "stack uwsgi@access_log=a b: access_log=a b: use off, or a file name without "),
        ("uwsgy@processes=3", "no stack called 'uwsgy'; did you mean uwsgi?"),
        ("uwsgi@", "stack uwsgi@: nothing follows the @; write uwsgi, or uwsgi@processes=5 for a variant"),
        ("uwsgi@=1", "stack uwsgi@=1: =1: write it as NAME=VALUE, for example processes=5"),
        ("@x", "stack '@x': no stack is named; `python -m bench list` prints all"),
        ("", "stack '': no stack is named; `python -m bench list` prints all"),
    ],
)
def test_a_wrong_variant_is_refused(name, message):
    with pytest.raises(BenchError) as caught:
        catalog.read().stack(name)
    assert str(caught.value).startswith(message)


LAYER = '\ntitle = "T"\nscope = "{scope}"\nabout = "A"\nseveral_hosts = "S"\n'


@pytest.mark.parametrize(("scope", "servers"), [("front", ""), ("app", GOOD[GOOD.index("[[server]]") :])])
def test_a_layer_has_servers_just_when_it_is_a_front(tmp_path, scope, servers):
    path = tmp_path / "layer.toml"
    path.write_text(LAYER.format(scope=scope) + servers)
    with pytest.raises(BenchError, match="a layer of scope front has a \\[\\[server\\]\\], and no other layer has"):
        manifest.read_layer(path)


@pytest.mark.parametrize("more", ["", 'one_host = "O"\n'])
def test_a_layer_says_what_it_promises_on_several_hosts_or_why_it_cannot(tmp_path, more):
    path = tmp_path / "layer.toml"
    both = LAYER.format(scope="app") + more
    path.write_text(both if more else both.replace('several_hosts = "S"\n', ""))
    wanted = (
        "it needs several_hosts (what it promises of a write on one of several web hosts) or one_host (why it cannot)"
    )
    with pytest.raises(BenchError) as raised:
        manifest.read_layer(path)
    assert str(raised.value) == f"{path}: {wanted}"


def test_what_a_layer_declares_holds_where_it_says():
    known = catalog.read()

    def of_layers(stack: manifest.Stack, layers: tuple[manifest.Layer, ...]) -> set[str]:
        return {item.check for item in compatibility.declared(layers, stack) if item not in stack.declares}

    names = {
        (stack, layer): of_layers(known.stack(stack), known.joined_layers(layer))
        for stack, layer in (
            ("cherokee-uwsgi-roundrobin", "uwsgi-cache"),
            ("cherokee-uwsgi-roundrobin@processes=2", "uwsgi-cache"),
            ("nginx-uwsgi", "uwsgi-cache"),
            ("nginx-uwsgi", "fragments"),
            ("nginx-uwsgi", "fragments+varnish"),
        )
    }
    assert "told-of-writes" in names["cherokee-uwsgi-roundrobin", "uwsgi-cache"]
    assert names["nginx-uwsgi", "uwsgi-cache"] == {"told-of-commands", "told-of-deploys"}
    assert "told-of-writes" in names["cherokee-uwsgi-roundrobin@processes=2", "uwsgi-cache"]
    assert "told-of-writes" not in names["nginx-uwsgi", "uwsgi-cache"]
    assert "keeps-pages" in names["nginx-uwsgi", "fragments"]
    assert "keeps-pages" not in names["nginx-uwsgi", "fragments+varnish"]
