"""Requests pages of a release in process, before a server has it; run by `manage.py shell` (benchapp-deploy).

When one fails, by an exception or a status of 500 and above, the last line says why, and the exit status is 1.
"""

import sys

from django.test import Client

PAGES = ['/', '/posts/', '/authors/', '/comments/']
HTTPS = True

proxied = {"HTTP_X_FORWARDED_PROTO": "https", "HTTP_FRONTPROTO": "https"} if HTTPS else {}
client = Client(HTTP_HOST="example.org", **proxied)
for path in PAGES:
    try:
        status = client.get(path, secure=HTTPS).status_code
    except Exception as error:
        sys.exit(f"GET {path}: {type(error).__name__}: {' '.join(str(error).split())}")
    if status >= 500:
        sys.exit(f"GET {path}: {status}")
