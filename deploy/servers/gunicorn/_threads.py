
# How many requests a process does at a time. With more than one thread the default class, `sync`, becomes `gthread`.
# Default: one. https://docs.gunicorn.org/en/stable/settings.html#worker-class
worker_class = "sync"
threads = {{ threads }}
# A worker takes only as many connections as it has threads, and closes each after its answer, so that the next request
# goes to a worker that is free. With more and with keep-alive a few workers take most connections and keep them, while
# others idle. They concern `gthread`; defaults: 1000 and 2. https://docs.gunicorn.org/en/stable/settings.html#keepalive
worker_connections = {{ threads }}
keepalive = 0
