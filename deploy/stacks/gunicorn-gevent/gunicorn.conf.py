#% extends "gunicorn.conf.py"
#% block worker
# A greenlet for each client, which gives way while it waits. Default "sync".
# https://docs.gunicorn.org/en/stable/design.html#async-workers
worker_class = "gevent"
# Clients at a time in a process; default 1000.
worker_connections = {{ web_connections }}
# Seconds that an idle connection stays open; default 2.
keepalive = {{ client_keepalive_s }}

#% endblock
#% block hooks
def post_worker_init(worker):
    """Let psycopg2 give way, and {{ threads }} requests at a time into the site; on SQLite, which never does, one."""
    # gevent has replaced Python's functions by now; the master, which reads this file, keeps its own.
    import sys
    import tempfile
    from shutil import copyfileobj

    from django.db import connection
    from gevent import spawn_later
    from gevent.lock import BoundedSemaphore

    # SQLite stops the whole process, and the request that holds its lock might be in the same one.
    free = BoundedSemaphore(1 if connection.vendor == "sqlite" else {{ threads }})
    if "psycopg2" in sys.modules:
        from psycopg2 import extensions, extras

        # psycopg2 waits in C, unless it is given a function that waits, as the package psycogreen does. A site may have
        # one of its own. https://www.psycopg.org/docs/advanced.html#green-support
        if not extensions.get_wait_callback():
            extensions.set_wait_callback(extras.wait_select)

    site = worker.wsgi

    def application(environ, start_response):
        # A request is read whole first, so that a slow one takes nobody's place.
        with tempfile.SpooledTemporaryFile(2**20) as body:
            copyfileobj(environ["wsgi.input"], body)
            body.seek(0)
            free.acquire()
            try:
                return site({**environ, "wsgi.input": body}, start_response)
            finally:
                # In the next turn of the event loop, which looks for new clients first: with others ready all the time
                # they would wait for seconds, as gunicorn accepts one in a turn.
                spawn_later(0, free.release)

    worker.wsgi = application
#% endblock
