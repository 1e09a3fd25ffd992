
# `sync`, the default class: a worker does one request at a time and closes the connection. The reverse proxy has already
# taken the whole request, so that nothing slow ever reaches a worker.
worker_class = "sync"
threads = 1
