#% extends "gunicorn.conf.py"
#% block worker
# uvicorn with the settings of the stack `uvicorn`. https://www.uvicorn.org/settings/
# https://github.com/Kludex/uvicorn-worker
from uvicorn_worker import UvicornWorker

# Where `uvicorn_protocol.py` is.
pythonpath = "{{ conf }}"


class Worker(UvicornWorker):
    # loop, http: the ones in C; by default those in Python where they are missing.
    # ws: WebSockets, which take the project's own application; a site that has none refuses them.
    # lifespan: Django has nothing to do when a worker starts or ends; by default it is asked.
    # proxy_headers: no header is believed that names another client: behind a server that ends TLS the site reads them;
    # default True.
    # timeout_graceful_shutdown: by default a worker waits for its requests without end.
    CONFIG_KWARGS = {
        "loop": "uvloop",
        "http": "uvicorn_protocol:Protocol",
        "ws": "wsproto",
        "lifespan": "off",
        "proxy_headers": False,
        "access_log": False,
        "timeout_graceful_shutdown": {{ stop_timeout_s }},
    }


worker_class = Worker
# Seconds that an idle connection stays open; default 2.
keepalive = {{ client_keepalive_s }}

#% endblock
#% block recycling
# No `max_requests`: a worker that ends so resets keep-alive connections on which a request is on its way.

#% endblock
#% block hooks
#% endblock
#% block wsgi
#% endblock
