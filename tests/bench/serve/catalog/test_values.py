"""Values: what they may be, and what is derived from them for the templates."""

from __future__ import annotations

import re
import shutil

import pytest

from bench import paths
from bench.errors import BenchError
from bench.serve.catalog import catalog, values
from bench.serve.deployment import render
from tests.cases import for_files


def test_a_file_of_values_is_checked_when_it_is_read(tmp_path):
    folder = tmp_path / "values"
    shutil.copytree(paths.DEPLOY / "values", folder)
    text = (folder / "production.toml").read_text()
    assert values.read(folder / "production.toml").names["listener"] == "tls"
    for right, wrong, message in (
        ('listener = "tls"', 'listener = "ssl"', "listener = 'ssl': use plain or tls or behind"),
        ("processes = 2", 'processes = "4"', "web_processes = '4': use a whole number, 1 or more"),
        ('bind6 = "::"', 'bind6 = "[::]"', "bind6 = '[::]': use off, or an IPv6 address without brackets"),
        ('http2 = "on"', 'trusted_proxies = "10.0.0.1/8"', "trusted_proxies = '10.0.0.1/8': use one network or more"),
        ('http2 = "on"', 'http3 = "on"', "http3: no such value; did you mean http2?"),
        ('server_names = "example.org www.example.org"', 'server_names = ""', "server_names = '': use one host name"),
    ):
        assert right in text
        (folder / "production.toml").write_text(text.replace(right, wrong, 1))
        with pytest.raises(BenchError) as caught:
            values.read(folder / "production.toml")
        assert str(caught.value).startswith(f"{folder / 'production.toml'}: {message}")


def test_the_site_knows_each_name_that_is_served():
    chosen = catalog.read().values["bench"].changed({"server_names": "127.0.0.1 shop.example *.b.example"})
    hosts = render.text(chosen.env["ALLOWED_HOSTS"], {**chosen.names, **values.derived(chosen.names)}, "ALLOWED_HOSTS")
    assert set(hosts.split(",")) == {"127.0.0.1", "localhost", "shop.example", ".b.example"}


@pytest.mark.parametrize("name", ["processes", "threads", "web_processes"])
def test_more_processes_and_threads_than_a_machine_holds_are_refused(name):
    bench = catalog.read().values["bench"]
    assert bench.changed({name: 512}).names[name] == 512
    with pytest.raises(BenchError, match=f"^--set {name}=100000000: use a whole number, 512 at most$"):
        bench.changed({name: 100_000_000})


@pytest.mark.parametrize(
    "names", ["example.org", "a-b.example.org *.example.org", ".example.org localhost", "127.0.0.1 [::1]", "my_host"]
)
def test_host_names_that_can_be_served(names):
    assert catalog.read().values["bench"].changed({"server_names": names}).names["server_names"] == names


@pytest.mark.parametrize(
    "names", ["*", "www.*", "a*.example.org", "*example.org", "a..b", "a.", "~a", "a  b", "a:80", "[]"]
)
def test_what_is_no_host_name_is_refused(names):
    with pytest.raises(BenchError, match=re.escape("*.example.org is every name below example.org")):
        catalog.read().values["bench"].changed({"server_names": names})


@pytest.mark.parametrize(
    ("names", "served", "refused"),
    [
        ("example.org", ["example.org"], ["a.example.org", "exampleXorg", "example.org.evil.test", "xexample.org"]),
        (
            "*.example.com",
            ["a.example.com", "A-1.b.example.com"],
            ["example.com", ".example.com", "a.example.com.evil.test"],
        ),
        (".example.com", ["example.com", "a.example.com"], ["aexample.com", "example.company"]),
        ("127.0.0.1 [::1]", ["127.0.0.1", "[::1]"], ["127.0.0.11", "127a0a0a1", "::1"]),
    ],
)
def test_the_pattern_of_the_host_names_matches_only_them(names, served, refused):
    pattern = values.derived({**catalog.read().values["bench"].names, "server_names": names})["server_names_re"]
    assert [name for name in served + refused if re.fullmatch(pattern, name)] == served
    # It stands in quotes, after a semicolon and at the end of a line, and counts no group.
    assert not set(pattern) & set("\"'; \n")
    assert re.compile(pattern).groups == 0


@pytest.mark.parametrize(
    ("changes", "name", "is_"),
    [
        ({"access_log": "off"}, "access", "off"),
        ({"access_log": "/var/log/access.log"}, "access", "on"),
        ({"listener": "plain"}, "scheme", "http"),
        ({"listener": "tls"}, "scheme", "https"),
        ({"server_names": "example.org www.example.org"}, "server_name", "example.org"),
        ({"server_names": "*.example.org www.example.org"}, "server_name", "www.example.org"),
        ({"server_names": "*.example.org"}, "server_name", "example.org"),
        ({"server_names": "*.example.org a.test .b.test"}, "single_names", ["a.test"]),
        (
            {"server_names": "*.example.org a.test .b.test"},
            "wildcard_names",
            ["*.example.org", "a.test", "b.test", "*.b.test"],
        ),
        ({"http2": "on"}, "alpn", "h2,http/1.1"),
        ({"listener": "behind", "trusted_proxies": "10.0.0.0/8"}, "believed_proxies", "10.0.0.0/8"),
        ({"trusted_proxies": "10.0.0.0/8"}, "believed_proxies", ""),
    ],
)
def test_what_is_derived_from_the_values(changes, name, is_):
    assert values.derived({**catalog.read().values["bench"].names, **changes})[name] == is_


# ------------------------------------------------------------------------------------- a file of the user's own


def own(tmp_path, text: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return str(path)


def test_an_own_file_changes_production_and_wins_over_the_stack(tmp_path):
    known = catalog.read()
    path = own(tmp_path, "processes = 3\nthreads = 2\n\n[env]\nDEBUG = 0\n\n[places]\nport = 8443\n")
    chosen = known.value_set(path)
    case = for_files("gunicorn", values=chosen)
    assert (case.settings["processes"], case.settings["threads"]) == (3, 2)
    assert (chosen.env["DEBUG"], chosen.places["port"]) == ("0", 8443)
    production = known.value_set("production")
    assert chosen.places["conf"] == production.places["conf"]
    assert chosen.names["web_processes"] == production.names["web_processes"]


def test_an_own_file_may_have_another_base(tmp_path):
    assert catalog.read().value_set(own(tmp_path, 'base = "bench"\nprocesses = 3')).places == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("proceses = 3", "proceses: no such value; did you mean processes?"),
        ("processes = 0", "processes=0: use a whole number, 1 or more"),
        ('base = "prodution"', "base = 'prodution': no such values; did you mean production?"),
        ("[places]\nprot = 1", "places.prot: no such place; did you mean port?"),
        ("processes", "not valid TOML: "),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path, text, message):
    path = own(tmp_path, text)
    with pytest.raises(BenchError) as refused:
        catalog.read().value_set(path)
    line = str(refused.value)
    assert line.startswith(f"{path}: {message}"), line
    assert "\n" not in line


def test_a_missing_file_is_named():
    with pytest.raises(BenchError, match=r"^nowhere\.toml: cannot be read: No such file or directory$"):
        catalog.read().value_set("nowhere.toml")
