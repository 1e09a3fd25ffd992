"""uvicorn's protocol as the kit has it: a head without an end is refused, and so is a handshake that is not ASCII."""

from __future__ import annotations

import asyncio
import importlib.util

import pytest

from bench import paths

pytest.importorskip("httptools", reason="program not installed: httptools")
pytest.importorskip("wsproto", reason="program not installed: wsproto")
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: %s\r\n\r\n"
)


class Transport:
    """A connection whose other side only listens."""

    def __init__(self):
        self.sent, self.closed = b"", False

    def write(self, data):
        self.sent += data

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def get_extra_info(self, name):
        return None

    def set_protocol(self, protocol):
        pass

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


async def application(scope, receive, send):
    if scope["type"] == "websocket":
        await send({"type": "websocket.close"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def first_line_of(data: bytes) -> bytes:
    """The first line of the response to a request."""
    from uvicorn.config import Config
    from uvicorn.server import ServerState

    path = paths.DEPLOY / "servers" / "uvicorn_protocol.py"
    spec = importlib.util.spec_from_file_location("uvicorn_protocol", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    async def exchange():
        config = Config(application, ws="wsproto", lifespan="off", log_level="critical")
        config.load()
        transport = Transport()
        protocol = module.Protocol(config, ServerState(), {})
        protocol.connection_made(transport)
        for start in range(0, len(data), 65536):
            if not transport.closed:
                protocol.data_received(data[start : start + 65536])
        await asyncio.sleep(0.05)
        return transport.sent

    return asyncio.run(exchange()).partition(b"\r\n")[0]


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (b"X-A: 1\r\n" * 100, 200),
        (b"X-A: 1\r\n" * 100_000, 400),
        (b"X-A: " + b"a" * 200_000 + b"\r\n", 400),
        (b"X-" + b"a" * 200_000 + b": 1\r\n", 400),
    ],
)
def test_a_head_has_a_limit(lines, status):
    assert first_line_of(b"GET / HTTP/1.1\r\nHost: a\r\n" + lines + b"\r\n").split()[1] == str(status).encode()


def test_an_address_has_a_limit():
    assert first_line_of(b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n").split()[1] == b"400"


@pytest.mark.parametrize(("protocol", "status"), [(b"chat", 403), (b"\xff", 400), (b"chat, \xc3\xa9", 400)])
def test_a_handshake_is_ascii(protocol, status):
    assert first_line_of(HANDSHAKE % protocol).split()[1] == str(status).encode()
