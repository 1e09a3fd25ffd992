"""Middleware for any Django project behind the kit's servers: client addresses, sessions, streams, static files."""
