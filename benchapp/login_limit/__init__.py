"""A limit for wrong passwords at every door that calls `authenticate()`: the login page, the admin, an API.

Any project can install the app, which imports nothing of the site:

    INSTALLED_APPS = [..., "benchapp.login_limit"]
    AUTHENTICATION_BACKENDS = [
        "benchapp.login_limit.backends.LimitBackend",  # first: it refuses before any password is looked at
        "django.contrib.auth.backends.ModelBackend",
    ]
    MIDDLEWARE = [..., "benchapp.login_limit.middleware.too_many_failed_logins"]  # after AuthenticationMiddleware

Then run `manage.py migrate`. Without the middleware a refused login looks like a wrong password, and a right password
without a login, such as one of an API, counts like a wrong one for half a minute. The address of a client is
REMOTE_ADDR: behind a reverse proxy the project has to set REMOTE_ADDR from a trusted header.
"""
