"""gunicorn behind a reverse proxy. Settings: https://docs.gunicorn.org/en/stable/settings.html"""

# A Unix socket costs less than TCP on the same machine. Default 127.0.0.1:8000.
bind = "{{ listen.text }}"
# What every stack with gunicorn shares.{% include "gunicorn/_process.py" %}{% include "gunicorn/_threads.py" %}

# Only the reverse proxy can reach the socket, and it overwrites these headers, so they are believed; default 127.0.0.1.
forwarded_allow_ips = "*"
# Only the header that is overwritten there says that a client came over TLS; by default two more do.
secure_scheme_headers = {"X-FORWARDED-PROTO": "https"}
# No header sets SCRIPT_NAME or PATH_INFO; by default two can.
forwarder_headers = ""
