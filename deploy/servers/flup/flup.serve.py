# flup, the application server. Arguments: https://pypi.org/project/flup-py3/, flup/server/fcgi_base.py
from importlib import import_module

from flup.server.fcgi import WSGIServer

application = getattr(import_module("{{ wsgi_module }}"), "{{ wsgi_name }}")

WSGIServer(
    application,
    # FastCGI over a Unix socket, as a file that only the servers' user may use.
    bindAddress="{{ listen.path }}",
    umask=0o117,
    # One process; each request that finds no thread idle gets a new one. `maxThreads` is not given, as `runfcgi` did not
    # give it: there is no limit. Nothing starts the process again when it is killed: no master watches over it.
    multithreaded=True,
    # Tracebacks are for the log, not for clients.
    debug=False,
).run()
