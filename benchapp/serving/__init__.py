"""Middleware for any Django project behind the kit's servers: addresses, HEAD, sessions, streams, static files."""
