"""A database backend for a server: Django's for PostgreSQL, whose waits end, with psycopg2 and with psycopg 3.

A server that hangs still acknowledges what it gets, since its kernel does: neither keepalives nor timeouts of TCP
notice, a Unix socket has none, and statement_timeout ends only statements of a server at work. Without a limit in the
driver, each worker would wait for ever.

https://docs.djangoproject.com/en/5.2/ref/databases/#subclassing-the-built-in-database-backends
"""
