"""Settings laid over another Django project while the kit serves the project, and around its ASGI application.

The package goes to production with the project, and imports `benchapp.caching`; its middleware is in
`benchapp.serving`.
"""
