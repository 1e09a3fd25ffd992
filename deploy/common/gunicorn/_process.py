
# Connections that wait for a worker; default 2048.
backlog = {{ backlog }}
chdir = "{{ project }}"

# How many processes, and how many requests each does at a time. With more than one thread the default class, `sync`,
# becomes `gthread`. Default: one of each. https://docs.gunicorn.org/en/stable/settings.html#worker-class
workers = {{ processes }}
worker_class = "sync"
threads = {{ threads }}
# A worker takes only as many connections as it has threads, and closes each after its answer, so that the next request
# goes to a worker that is free. With more and with keep-alive a few workers take most connections and keep them, while
# others idle. They concern `gthread`; defaults: 1000 and 2. https://docs.gunicorn.org/en/stable/settings.html#keepalive
worker_connections = {{ threads }}
keepalive = 0

# Requests are parsed in Python. The C parser of `gunicorn[fast]` needs a compiler and saves nothing measurable here: 0.99
# times the requests per CPU second on a page of a few bytes (0.98 to 1.03). Default "auto": the C parser where it is
# installed.
# https://docs.gunicorn.org/en/stable/settings.html#http-parser
http_parser = "python"

# Header names with an underscore are dropped, as by default: WSGI cannot tell it from a dash.
header_map = "drop"

# A worker silent for longer is killed and replaced; default 30.
timeout = {{ request_timeout_s }}
graceful_timeout = {{ stop_timeout_s }}

# The heartbeat files; a memory file system keeps the disk out of it. Default /tmp.
worker_tmp_dir = "/dev/shm"

# Each worker loads the application, so that new workers have its new version after a reload. Default False.
preload_app = False

# The control socket is one a user by default, so that two instances collide.
control_socket_disable = True

# Only errors, to the standard error stream.
accesslog = None
errorlog = "-"
loglevel = "warning"
proc_name = "benchapp-gunicorn"


def on_starting(server):
    """A request that cannot be read is logged in one line of at most 300 characters."""

    def short(record):
        record.msg, record.args = record.getMessage()[:300], ()
        if record.exc_info and isinstance(record.exc_info[1], OSError):
            record.exc_info = None
        return True

    server.log.error_log.addFilter(short)
