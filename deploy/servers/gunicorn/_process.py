
# Connections that wait for a worker; default 2048.
backlog = {{ backlog }}
chdir = "{{ project }}"

# How many processes; default 1. https://docs.gunicorn.org/en/stable/settings.html#workers
workers = {{ processes }}

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
