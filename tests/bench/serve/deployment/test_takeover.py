"""Two processes of a server on one address."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import DeploymentError
from bench.serve.catalog import catalog
from bench.serve.deployment import takeover
from bench.serve.machine.identity import Identity
from bench.serve.machine.supervise import Address

ME = Identity("me", os.getuid(), os.getgid(), ())
# Says at which address it takes connections, and who may: the process of that number only.
SAY = """
import os, socket
held = socket.socket(fileno=3)
print(held.getsockname()[1], os.environ["LISTEN_PID"] == str(os.getpid()), os.environ["LISTEN_FDS"])
connection, _ = held.accept()
connection.sendall(b"here")
"""


def servers(stack: str):
    return catalog.read().stacks[stack].servers


def test_connections_wait_in_the_held_socket_for_the_next_process():
    held = takeover.listening_socket(Address(host="127.0.0.1", port=0), 16, ME)
    port = held.getsockname()[1]
    with held, socket.create_connection(("127.0.0.1", port)) as early:
        for client in (early, None):
            client = client or socket.create_connection(("127.0.0.1", port))
            argv = [*takeover.INHERITING, sys.executable, "-c", SAY]
            done = subprocess.run(argv, stdin=held.fileno(), capture_output=True, text=True, timeout=60)
            assert (done.stdout.split(), done.stderr) == ([str(port), "True", "1"], "")
            assert client.recv(16) == b"here"
            client.close()


def test_an_address_in_use_is_one_line():
    with takeover.listening_socket(Address(host="127.0.0.1", port=0), 16, ME) as held:
        taken = Address(host="127.0.0.1", port=held.getsockname()[1])
        with pytest.raises(
            DeploymentError, match=rf"^cannot listen on 127\.0\.0\.1:{taken.port}: Address already in use$"
        ):
            takeover.listening_socket(taken, 16, ME)


def test_the_link_leads_to_the_newer_of_two_socket_files(tmp_path):
    granian = servers("nginx-granian")[0]
    address = Address(path=str(tmp_path / "granian.sock"))
    seen = []
    for turn in range(3):
        own = takeover.own_address(granian, address, turn)
        takeover.lead(address, own)
        seen.append(str(Path(address.path).readlink()))
    assert seen[0] == seen[2] != seen[1] and address.path not in seen
    # A held socket is the same one for both.
    gunicorn = servers("nginx-gunicorn")[0]
    assert takeover.own_address(gunicorn, address, 1) == address


def test_the_second_apache_has_other_files_than_the_first():
    apache = servers("apache-modwsgi")[0]
    assert [takeover.words(apache, turn) for turn in range(3)] == [(), ("-DStandIn",), ()]
    assert takeover.words(servers("uvicorn")[0], 0) == takeover.words(servers("uvicorn")[0], 1) == ("--fd", "3")


def test_it_waits_for_each_process_to_load_the_application(tmp_path, monkeypatch):
    monkeypatch.setattr(takeover, "QUIET_S", 0.2)
    with pytest.raises(DeploymentError, match="no process has loaded the application within 0 s"):
        takeover.wait_loaded(tmp_path, 2, lambda: None, 0)
    with pytest.raises(DeploymentError, match="it ended"):
        takeover.wait_loaded(tmp_path, 2, lambda: DeploymentError("it ended"), 60)
    # One that preloads has one, and no more come.
    (tmp_path / "1").touch()
    takeover.wait_loaded(tmp_path, 2, lambda: None, 60)
    (tmp_path / "2").touch()
    takeover.wait_loaded(tmp_path, 2, lambda: None, 60)


@pytest.mark.parametrize(
    ("stack", "possible"),
    [
        ("gunicorn", True),
        ("nginx-uwsgi", True),
        ("granian", True),
        ("nginx-waitress", True),
        ("uwsgi", False),
        ("lighttpd-flup", False),
    ],
)
def test_what_shares_an_address_is_known_of_its_manifest(stack, possible):
    server = servers(stack)[0]
    address = Address(path="/run/x.sock") if server.listen == "unix" else Address(host="127.0.0.1", port=8000)
    assert takeover.is_possible(server, address) is possible
