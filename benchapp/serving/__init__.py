"""Middleware for any Django project behind the kit's servers: addresses, sessions, streams, static files."""
