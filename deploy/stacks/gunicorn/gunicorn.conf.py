"""gunicorn facing clients itself. Settings: https://docs.gunicorn.org/en/stable/settings.html"""

import socket
import struct

# Where it listens; default 127.0.0.1:8000.
bind = "{{ listen.text }}"
# What every stack with gunicorn shares.{% include "gunicorn/_process.py" %}{% include "gunicorn/_threads.py" %}

# No server stands in front, so that no header is believed that names another client; default 127.0.0.1.
forwarded_allow_ips = ""


def when_ready(server):
    """Give each client {{ client_timeout_s }} s for the next piece of its request; default: as long as it likes.

    A connection takes over the timeout of the socket that it came in by; see SO_RCVTIMEO in socket(7).
    """
    for listener in server.LISTENERS:
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", {{ client_timeout_s }}, 0))
