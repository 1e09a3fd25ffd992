"""Settings laid over another Django project where the kit serves it, and around its ASGI application.

They go to production with it, and import `benchapp.caching` besides; their middleware is in `benchapp.serving`.
"""
