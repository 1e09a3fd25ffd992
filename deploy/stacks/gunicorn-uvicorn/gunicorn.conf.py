# gunicorn with uvicorn's worker. Settings: https://docs.gunicorn.org/en/stable/settings.html
# The connection of a client comes first.{{ "\n" }}{% include "uvicorn/uvicorn_protocol.py" %}

from uvicorn_worker import UvicornWorker

# Where it listens; default 127.0.0.1:8000.
bind = "{{ listen.text }}"
# What every stack with gunicorn shares.{% include "gunicorn/_process.py" %}


class Worker(UvicornWorker):
    """uvicorn with the settings of the stack `uvicorn`. https://www.uvicorn.org/settings/"""

    # loop, http: the ones in C; by default those in Python where they are missing.
    # lifespan: Django has nothing to do when a worker starts or ends; by default it is asked.
    # proxy_headers: no server stands in front, so that no header is believed that names another client; default True.
    # timeout_graceful_shutdown: by default a worker waits for its requests without end.
    CONFIG_KWARGS = {
        "loop": "uvloop",
        "http": Protocol,
        "lifespan": "off",
        "proxy_headers": False,
        "access_log": False,
        "timeout_graceful_shutdown": {{ stop_timeout_s }},
    }


# https://github.com/Kludex/uvicorn-worker
worker_class = Worker
# Seconds that an idle connection stays open; default 2.
keepalive = {{ client_keepalive_s }}
