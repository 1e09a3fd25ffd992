"""Middleware for any Django project behind the kit's servers: addresses, headers, sessions, streams, static files."""
