#% extends "gunicorn.conf.py"
#% block worker
# An event loop in each process; how many requests of them run at a time is the site's to say (BENCHAPP_ASGI_THREADS).
# Default "sync". https://docs.gunicorn.org/en/stable/asgi.html
worker_class = "asgi"
# The event loop in C; by default the one in Python where it is missing.
asgi_loop = "uvloop"
# Django has nothing to do when a worker starts or ends; by default it is asked.
asgi_lifespan = "off"
# Seconds that an idle connection stays open; default 2.
keepalive = {{ client_keepalive_s }}

#% endblock
#% block wsgi
#% endblock
