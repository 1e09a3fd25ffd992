"""gunicorn facing clients itself. Settings: https://docs.gunicorn.org/en/stable/settings.html"""

# Where it listens; default 127.0.0.1:8000.
bind = "{{ listen.text }}"
backlog = {{ backlog }}
chdir = "{{ project }}"

# Default 1 worker of class `sync`, which closes the connection after each answer and waits for a slow client. `gthread`
# keeps idle connections in a poller of its own, so that only requests occupy a thread.
workers = {{ processes }}
worker_class = "gthread"
threads = {{ threads }}
worker_connections = 2000
keepalive = {{ client_keepalive_s }}

# A worker silent for longer is killed and replaced; default 30.
timeout = {{ request_timeout_s }}
graceful_timeout = {{ stop_timeout_s }}

# The heartbeat files; a memory file system keeps the disk out of it. Default /tmp.
worker_tmp_dir = "/dev/shm"

# The application is loaded once, before the workers are forked, which share its memory. Default False.
preload_app = True

# Nobody stands in front, so that nobody is believed who says so; default 127.0.0.1.
forwarded_allow_ips = ""

# The control socket is one a user by default, so that two instances collide.
control_socket_disable = True

# Only errors, to the standard error stream.
accesslog = None
errorlog = "-"
loglevel = "warning"
proc_name = "benchapp-gunicorn"
