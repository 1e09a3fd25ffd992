"""gunicorn. Settings: https://gunicorn.org/reference/settings/"""

# --- Listener ---

# Default 127.0.0.1:8000. A Unix socket costs less than TCP on the same machine.
bind = "127.0.0.1:8000"
# Connections that wait for a worker; default 2048.
backlog = 1024

# --- Processes ---

chdir = "/srv/benchapp/current"
proc_name = "benchapp-gunicorn"
# How many processes; default 1. https://gunicorn.org/reference/settings/#workers
workers = 4
# Each worker loads the application, so that new workers have its new version after a reload. Default False.
preload_app = False
# The heartbeat files; a memory file system keeps the disk out of it. Default /tmp.
worker_tmp_dir = "/dev/shm"
# The control socket is one a user by default, so that two instances collide.
control_socket_disable = True

# uvicorn with the settings of the stack `uvicorn`. https://www.uvicorn.org/settings/
# https://github.com/Kludex/uvicorn-worker
from uvicorn_worker import UvicornWorker

# The folder of `uvicorn_protocol.py`.
pythonpath = "/etc/benchapp"

class Worker(UvicornWorker):
    # loop, http: the ones in C; by default those in Python if they are missing.
    # ws: WebSockets, which take the project's own application; a site that has none refuses them.
    # lifespan: Django has nothing to do when a worker starts or ends; by default it is called.
    # proxy_headers: no header is believed that names another client: behind a server that terminates TLS the site reads them;
    # default True.
    # timeout_graceful_shutdown: by default a worker waits for its requests without end.
    CONFIG_KWARGS = {
        "loop": "uvloop",
        "http": "uvicorn_protocol:Protocol",
        "ws": "wsproto",
        "lifespan": "off",
        "proxy_headers": False,
        "access_log": False,
        "timeout_graceful_shutdown": 30,
    }

worker_class = Worker
# Seconds that an idle connection stays open; default 2.
keepalive = 30

# --- Limits ---

# A worker silent for longer is killed and replaced; default 30.
timeout = 30
# How long a worker that is to stop may finish its requests; default 30.
graceful_timeout = 30

# No `max_requests`: a worker that ends so resets keep-alive connections on which a request is on its way.

# --- Log ---

# Only errors, to the standard error stream.
accesslog = None
errorlog = "-"
loglevel = "warning"
# --- Requests ---

# Requests are parsed in Python: the C parser of `gunicorn[fast]` is another package, which needs a compiler. Default
# "auto": the C parser if it is installed. https://gunicorn.org/reference/settings/#http_parser
http_parser = "python"
# Header names with an underscore are dropped, as by default: WSGI cannot tell it from a dash.
header_map = "drop"
# No header is believed that names another client: behind a server that terminates TLS the site reads them; default 127.0.0.1.
forwarded_allow_ips = ""

def on_starting(server):
    """A request that cannot be read is logged in one line of at most 300 characters."""

    def short(record):
        record.msg, record.args = record.getMessage()[:300], ()
        if record.exc_info and isinstance(record.exc_info[1], OSError):
            record.exc_info = None
        return True

    server.log.error_log.addFilter(short)

