"""A database backend for a server: Django's for PostgreSQL, with limits for all waits, for psycopg2 and psycopg 3.

The kernel of a hung server still acknowledges packets: neither keepalives nor timeouts of TCP notice, a Unix socket has
none, and statement_timeout ends only statements of a server at work. Without a limit in the driver, each worker would
wait for ever.

https://docs.djangoproject.com/en/5.2/ref/databases/#subclassing-the-built-in-database-backends
"""
