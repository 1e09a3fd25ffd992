
# `gthread`: a worker does as many requests at a time as it has threads, and keeps idle connections in a poller of its own.
# Default class: sync, one thread.
worker_class = "gthread"
threads = {{ threads }}
worker_connections = 1000
# Longer than the reverse proxy keeps an idle connection open, so that none is closed under it; default 2.
keepalive = 75
