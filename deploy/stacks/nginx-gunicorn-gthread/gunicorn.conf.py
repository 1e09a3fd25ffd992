"""gunicorn behind Nginx on a Unix socket. Settings: https://docs.gunicorn.org/en/stable/settings.html"""

# A Unix socket costs less than TCP on the same machine. Default 127.0.0.1:8000.
bind = "{{ listen.text }}"
backlog = {{ backlog }}
chdir = "{{ project }}"

# `gthread`: a worker does as many requests at a time as it has threads, and keeps idle connections in a poller of its own.
# Default class: sync, one thread. Connections must stay open longer than Nginx keeps them, or it meets closed ones.
workers = {{ processes }}
worker_class = "gthread"
threads = {{ threads }}
worker_connections = 1000
keepalive = 75

# A worker silent for longer is killed and replaced; default 30.
timeout = {{ request_timeout_s }}
graceful_timeout = {{ stop_timeout_s }}

# The heartbeat files; a memory file system keeps the disk out of it. Default /tmp.
worker_tmp_dir = "/dev/shm"

# The application is loaded once, before the workers are forked, which share its memory. Default False.
preload_app = True

# Only Nginx can reach the socket, and it overwrites these headers, so they are believed; default 127.0.0.1.
forwarded_allow_ips = "*"
# Only the header that is overwritten there says that a client came over TLS; by default two more do.
secure_scheme_headers = {"X-FORWARDED-PROTO": "https"}
# No header sets SCRIPT_NAME or PATH_INFO; by default two can.
forwarder_headers = ""

# The control socket is one a user by default, so that two instances collide.
control_socket_disable = True

# Only errors, to the standard error stream.
accesslog = None
errorlog = "-"
loglevel = "warning"
proc_name = "benchapp-gunicorn"
