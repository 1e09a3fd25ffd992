"""Start PgBouncer with the database of the site: pgbouncer_start.py PROGRAM CONFIGURATION DATABASES

The URL of the database is in the environment, or among the secrets that systemd hands over. DATABASES is the file that
gets what PgBouncer needs of it, closed to others since it has the password.
"""

import os
import sys
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

NAMES = ("BENCHAPP_DATABASE_URL", "DATABASE_URL")


def database_url() -> str:
    """The URL of the site's database; the secrets have the last word, and a comment has its line to itself."""
    values = dict(os.environ)
    secrets = Path(os.environ.get("CREDENTIALS_DIRECTORY", ""), "secrets.env")
    if "CREDENTIALS_DIRECTORY" in os.environ and secrets.is_file():
        for line in secrets.read_text("utf-8").splitlines():
            name, equals, value = line.strip().partition("=")
            if equals and not name.startswith(("#", ";")):
                values[name] = unquoted(value.strip()).replace("\\\\", "\\")
    for name in NAMES:
        if values.get(name):
            return values[name]
    sys.exit(f"pgbouncer_start.py: no {' and no '.join(NAMES)}; write one into secrets.env")


def unquoted(value: str) -> str:
    """The value without the quotes around it, as the site reads it."""
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value


def section(url: str) -> str:
    """The section of PgBouncer's configuration for the database of a URL."""
    parts = urlsplit(url)
    if not parts.scheme.startswith(("postgres", "postgis")):
        sys.exit(f"pgbouncer_start.py: {parts.scheme}: PgBouncer is for PostgreSQL")
    name = unquote(parts.path.lstrip("/"))
    settings = {
        "host": unquote(parts.hostname or "") or parse_qs(parts.query).get("host", ["/var/run/postgresql"])[0],
        "port": str(parts.port or parse_qs(parts.query).get("port", [""])[0]),
        "dbname": name,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
    }
    if not settings["user"]:
        import pwd

        settings["user"] = pwd.getpwuid(os.getuid()).pw_name
    words = " ".join(f"{key}={quoted(value)}" for key, value in settings.items() if value)
    return f"[databases]\n{quoted_name(name)} = {words}\n"


def quoted(value: str) -> str:
    """A value in single quotes, a quote in it written twice."""
    return "'" + value.replace("'", "''") + "'"


def quoted_name(name: str) -> str:
    """The name of a database in double quotes, unless it is a plain word."""
    return name if name.replace("_", "").isalnum() else '"' + name.replace('"', '""') + '"'


def main(program: str, configuration: str, databases: str) -> None:
    os.umask(0o077)
    Path(databases).write_text(section(database_url()), "utf-8")
    os.execv(program, [program, configuration])


if __name__ == "__main__":
    main(*sys.argv[1:])
