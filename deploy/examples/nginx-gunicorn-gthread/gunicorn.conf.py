"""gunicorn. Settings: https://gunicorn.org/reference/settings/"""

# --- Listener ---

# Default 127.0.0.1:8000. A Unix socket costs less than TCP on the same machine.
bind = "unix:/run/benchapp/gunicorn.sock"
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

# A worker takes only as many connections as it has threads, and closes each after its response, so that the next request
# goes to a worker that is free. With more and with keep-alive a few workers take most connections and keep them, while
# others idle. Defaults: 1000 and 2. https://gunicorn.org/reference/settings/#keepalive
worker_connections = 4
keepalive = 0
# How many requests a process does at a time. With more than one thread the default class, `sync`, becomes `gthread`.
# Default: one. https://gunicorn.org/reference/settings/#worker_class
worker_class = "sync"
threads = 4

# --- Limits ---

# A worker silent for longer is killed and replaced; default 30.
timeout = 30
# How long a worker that is to stop may finish its requests; default 30.
graceful_timeout = 30

# A worker is replaced after this many requests, and up to so many more, so that a leak of memory does not grow for ever
# and not all are replaced at once. Default 0: never. https://gunicorn.org/reference/settings/#max_requests
max_requests = 10000
max_requests_jitter = 2500

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
# Only the reverse proxy can reach the socket, and it overwrites these headers, so they are believed; default 127.0.0.1.
forwarded_allow_ips = "*"
# Only the header that is overwritten there says that a client came over TLS; by default two more do.
secure_scheme_headers = {"X-FORWARDED-PROTO": "https"}
# No header sets SCRIPT_NAME or PATH_INFO; by default two can.
forwarder_headers = ""

def on_starting(server):
    """A request that cannot be read is logged in one line of at most 300 characters."""

    def short(record):
        record.msg, record.args = record.getMessage()[:300], ()
        if record.exc_info and isinstance(record.exc_info[1], OSError):
            record.exc_info = None
        return True

    server.log.error_log.addFilter(short)

def pre_request(worker, req):
    """Refuse a request that Django would read as another one with status 400; default: none.

    Under WSGI it reads as much of a body as Content-Length says, and none of a chunked one: a form would be empty. Without
    a Host header it takes this server's own address. https://gunicorn.org/reference/settings/#pre_request
    """
    from gunicorn.http.errors import InvalidHeader

    names = {name for name, _ in req.headers}
    if "TRANSFER-ENCODING" in names:
        raise InvalidHeader("TRANSFER-ENCODING", req=req)
    if "HOST" not in names and req.version >= (1, 1):
        raise InvalidHeader("HOST", req=req)

def post_request(worker, req, environ, resp):
    """Read up to 8 MB that a view has left unread of a body; default: nothing.

    A connection that is closed with more than 64 kB of its request unread may be reset, and the response with it: the
    client, or the web server in front, sees an error. https://gunicorn.org/reference/settings/#post_request
    """
    if resp:
        for _ in range(128):
            if not req.body.read(65536):
                break

