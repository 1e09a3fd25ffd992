"""With `metrics` on servers have their own figures on loopback addresses, in the form that their manifests name."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from bench.serve.catalog import catalog
from tests.deploy.running import Up, get, runnable

pytestmark = pytest.mark.servers

ON = ("--set", "metrics=on")


def figures(stack: str, server: str) -> str:
    """The address of the figures in the manifest."""
    chosen = next(item for item in catalog.read().stacks[stack].servers if item.name == server)
    return chosen.metrics.url.replace("{{ metrics_bind }}", "127.0.0.1")


def test_haproxy_speaks_prometheus_and_gunicorn_statsd(site_url):
    runnable("haproxy-gunicorn")
    place = urlsplit(figures("haproxy-gunicorn", "gunicorn"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind((place.hostname, place.port))
        receiver.settimeout(20)
        with Up("haproxy-gunicorn", "--database", site_url, *ON) as up:
            for _ in range(3):
                assert get(up.url).status_code == 200
            text = httpx2.get(figures("haproxy-gunicorn", "haproxy")).text
            assert 'haproxy_frontend_http_responses_total{proxy="site",code="2xx"}' in text
            seen = b""
            while b"benchapp.gunicorn.request" not in seen:
                seen += receiver.recv(65536)


def test_uwsgi_has_json_and_nginx_a_page_for_its_exporter(site_url):
    runnable("nginx-uwsgi")
    with Up("nginx-uwsgi", "--database", site_url, *ON) as up:
        assert get(up.url).status_code == 200
        document = json.loads(httpx2.get(figures("nginx-uwsgi", "uwsgi")).text)
        assert sum(worker["requests"] for worker in document["workers"]) > 0
        master = next(item for item in up.tree() if "nginx: master" in " ".join(item.cmdline()))
        place = next(Path(item.laddr) for item in master.net_connections("unix") if "nginx-status" in str(item.laddr))
        with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(place))) as client:
            assert "server accepts handled requests" in client.get("http://status/").text


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("stack", "url", "word"),
    [
        ("caddy-gunicorn", "http://127.0.0.1:9180/metrics", "caddy_http_requests_total"),
        ("apache-modwsgi", "http://127.0.0.1:9118/?auto", "Total Accesses: "),
    ],
)
def test_other_web_servers_count_requests(stack, url, word, site_url):
    runnable(stack)
    with Up(stack, "--database", site_url, *ON) as up:
        assert get(up.url).status_code == 200
        assert word in httpx2.get(url).text
