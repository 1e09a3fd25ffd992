"""Results of the check `tls` for a server with another TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import threading
from types import SimpleNamespace

import pytest

from bench.serve.machine.http import Target
from bench.verify.checks.client_connections import tls
from bench.verify.mismatch import NotTried


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    subprocess.run([*command, "-keyout", folder / "key", "-out", folder / "cert"], check=True, capture_output=True)
    return folder / "cert", folder / "key"


@contextlib.contextmanager
def speaking(certificate, change):
    """A server that only shakes hands; its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    change(context)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client, contextlib.suppress(OSError), context.wrap_socket(client, server_side=True) as opened:
                    opened.recv(1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield Target.parse(f"https://127.0.0.1:{listener.getsockname()[1]}/")
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def old(context):
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.set_ciphers("ALL:@SECLEVEL=0")


def without_tickets(context):
    context.options |= ssl.OP_NO_TICKET


def only_1_2(context):
    context.maximum_version = ssl.TLSVersion.TLSv1_2


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda context: None, []),
        (old, ["TLSv1_1: refused"]),
        (only_1_2, ["TLSv1_3: spoken"]),
        (without_tickets, ["a second connection resumes the first one's session"]),
    ],
)
def test_old_versions_and_whole_handshakes_are_noticed(certificate, change, wrong):
    with speaking(certificate, change) as target:
        assert [item.expected for item in tls.run(SimpleNamespace(target=target))] == wrong


def test_a_plain_listener_is_not_tried():
    with pytest.raises(NotTried):
        list(tls.run(SimpleNamespace(target=Target.parse("http://127.0.0.1:1/"))))
