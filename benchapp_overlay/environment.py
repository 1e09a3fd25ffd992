"""Strict readers of environment variables.

django-environ reads any unknown word as False and raises a traceback for a bad number. A setting with a typing error
must not silently become its default, so these readers raise ImproperlyConfigured with one line: the variable, its
value, and the allowed values.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import django
import environ
from django.core.exceptions import ImproperlyConfigured

from benchapp.caching.harmless import PAUSE, RESUME
from benchapp.caching.registry import LAYERS

SWITCHES = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off", ""), False)
DATABASE_SCHEMES = ("sqlite", "postgres", "postgresql")
# Of any project, whose drivers it has itself.
ALL_DATABASE_SCHEMES = (*DATABASE_SCHEMES, *environ.Env.DB_SCHEMES)
DATABASE_SWITCHES = ("ATOMIC_REQUESTS", "AUTOCOMMIT", "CONN_HEALTH_CHECKS", "DISABLE_SERVER_SIDE_CURSORS")
# https://docs.djangoproject.com/en/5.1/releases/5.1/#postgresql-connection-pools
POOLS_SINCE = (5, 1)
DATABASE_FORMS = "sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME"


class Env(environ.Env):
    """The environment of the process; each method reads the variable of a name."""

    def str(self, name: str, default: str = "") -> str:
        """The unchanged value: the library takes a `$` at the start of a secret for the name of a variable."""
        return self.ENVIRON.get(name, default)

    def text(self, name: str, default: str = "") -> str:
        """The stripped value; the default if empty or unset."""
        return self.str(name, default="").strip() or default

    def flag(self, name: str, default: bool = False) -> bool:
        """A switch: 1 or 0, true or false, yes or no, on or off, in any case; empty means off."""
        value = self.str(name, default=str(int(default)))
        if value.strip().lower() not in SWITCHES:
            raise _refused(name, value, "1 or 0")
        return SWITCHES[value.strip().lower()]

    def choice(self, name: str, *choices: str) -> str:
        """One of a few words; the first is the default."""
        value = self.text(name, choices[0])
        if value not in choices:
            raise _refused(name, value, " or ".join(choices))
        return value

    def whole_number(self, name: str, default: int, minimum: int, maximum: int) -> int:
        """A decimal integer between minimum and maximum, both allowed."""
        value = self.text(name, str(default))
        digits = value.isascii() and value.isdigit() and len(value) <= len(str(maximum))
        if not (digits and minimum <= int(value) <= maximum):
            raise _refused(name, value, f"a whole number from {minimum} to {maximum}")
        return int(value)

    def networks(self, name: str) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
        """Networks with spaces between, such as 10.0.0.0/8; empty for an empty value."""
        try:
            return [ipaddress.ip_network(word) for word in self.text(name).split()]
        except ValueError:
            raise _refused(name, self.text(name), "networks with spaces between, such as 10.0.0.0/8") from None

    def directory(self, name: str, base: Path, default: Path | None = None) -> Path | None:
        """An absolute path, relative ones counted from base. The directory need not exist; a file of that name is
        refused.
        """
        path = (base / self.text(name)).resolve() if self.text(name) else default
        if path and (path == path.parent or (path.exists() and not path.is_dir())):
            raise _refused(name, self.text(name), "a separate directory")
        return path

    def file(self, name: str, base: Path) -> Path | None:
        """The absolute path of a file that need not exist, relative paths counted from base; None when unset."""
        path = (base / self.text(name)).resolve() if self.text(name) else None
        if path and path.is_dir():
            raise _refused(name, self.text(name), "a file, not a directory")
        return path

    def address(self, name: str, scheme: str = "") -> str:
        """The address of a server: unix:/path, or host:port with the scheme before it; empty when unset."""
        value = self.text(name)
        try:
            parts = urlsplit(f"//{value}" if not scheme else value)
            good = parts.scheme == scheme and parts.hostname and parts.path in ("", scheme and "/")
            good = value.startswith("unix:/") or (good and (parts.port is not None or scheme))
        except ValueError:
            good = False
        if value and not good:
            raise _refused(name, value, f"unix:/path or {scheme and 'http://'}host:port")
        return value

    def hosts(self, name: str, default: list[str]) -> list[str]:
        """A comma-separated list of host names, without scheme, port or path, for Django's ALLOWED_HOSTS."""
        values = self._words(name)
        for value in values:
            port = value.rpartition(":")[2] if not value.startswith("[") else ""
            if "/" in value or " " in value or (port != value and port.isdigit()):
                raise _refused(name, value, "host names, without scheme, port and path")
        return values or default

    def origins(self, name: str) -> list[str]:
        """A comma-separated list of origins with their scheme, as Django's CSRF_TRUSTED_ORIGINS takes them."""
        values = self._words(name)
        for value in values:
            if not value.startswith(("http://", "https://")):
                raise _refused(name, value, "origins with their scheme, such as https://example.com")
        return values

    def _words(self, name: str) -> list[str]:
        """The words between commas."""
        words = [word.strip() for word in self.text(name).split(",")]
        return [word for word in words if word]

    def database(self, name: str, default: str, base: Path, schemes: tuple[str, ...] = DATABASE_SCHEMES) -> dict:
        """Django's settings for the database of a URL.

        A relative SQLite file is below `base`: each server has another working directory. The message never repeats the
        URL, which may hold a password.
        """
        value = self.text(name, default)
        scheme = value.partition(":")[0]
        if scheme not in schemes:
            raise ImproperlyConfigured(f"{name}: {scheme!r} is not a database of this site: use {DATABASE_FORMS}")
        # The library warns of a host and goes on.
        has_host = scheme == "sqlite" and not value.startswith(("sqlite:///", "sqlite://:memory:"))
        try:
            settings = {} if has_host else self.db_url_config(value)
        except (ValueError, ImproperlyConfigured):
            settings = {}
        if not settings.get("NAME"):
            raise ImproperlyConfigured(f"{name} cannot be read as a database URL: use {DATABASE_FORMS}")
        if scheme == "sqlite" and settings["NAME"] != ":memory:":
            settings["NAME"] = str(base / settings["NAME"])
        if "pool" in settings.get("OPTIONS", {}):
            settings["OPTIONS"]["pool"] = _pool(name, str(settings["OPTIONS"]["pool"]))
        if settings.get("HOST"):
            # It may be the folder of a socket, as libpq writes one in a URL.
            settings["HOST"] = unquote(settings["HOST"])
        return settings | _options_of_django(name, settings)

    def caching_layers(self, base: Path) -> dict[str, dict[str, object]]:
        """The active caching layers with their options.

        A layer with options is active when CACHING_<LAYER>_<OPTION> is set for one of them, and then needs all except
        the optional ones. A layer without options is active when CACHING_<LAYER> is 1.
        """
        readers = {
            "directory": lambda name: self.directory(name, base),
            "file": lambda name: self.file(name, base),
            "megabytes": lambda name: self.whole_number(name, 0, minimum=0, maximum=1_048_576),
            "memcached": lambda name: needs_package(name, "pymemcache", self.address(name)),
            "url": lambda name: self.address(name, "http"),
            "word": self.text,
        }
        active = {}
        for layer_name, layer in LAYERS.items():
            prefix = f"CACHING_{layer_name.replace('-', '_')}".upper()
            kinds = {**layer.options, **layer.optional}
            options = {option: readers[kind](f"{prefix}_{option.upper()}") for option, kind in kinds.items()}
            missing = [f"{prefix}_{option.upper()}" for option in layer.options if not options[option]]
            if missing and any(options.values()):
                raise ImproperlyConfigured(f"{missing[0]} is not set: the layer {layer_name} needs it")
            if not missing if layer.options else self.flag(prefix):
                active[layer_name] = options
        return active


def scheme(env: Env, is_https: bool, trusted_proxies: Collection[object]) -> str:
    """The scheme of all visitors; empty, like the variable, if a load balancer in front may accept both."""
    if is_https:
        return "https"
    value = env.str("BENCHAPP_SCHEME", default="" if trusted_proxies else "http")
    if value not in ("", "http", "https"):
        raise _refused("BENCHAPP_SCHEME", value, "http, https, or nothing if both are used")
    return value


def with_pauses(middleware: Sequence[str], harmless: Collection[str]) -> list[str]:
    """MIDDLEWARE with Pause and Resume around harmless middleware, whose reads are not watched."""
    entries = []
    for name in middleware:
        entries += [PAUSE, name, RESUME] if name in harmless else [name]
    return entries


def needs_package(name: str, package: str | None, value: str) -> str:
    """The value of a variable, if the package that the value needs is installed."""
    if value and package and not find_spec(package):
        raise ImproperlyConfigured(f"{name}: {value} needs a package: pip install {package}")
    return value


def _options_of_django(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Django's own options in the URL of a database: the library leaves words such as `false` words."""
    options: dict[str, Any] = {}
    for option in DATABASE_SWITCHES:
        value = str(settings.get(option, "")).strip().lower()
        if value not in SWITCHES:
            raise ImproperlyConfigured(f"{name}: {option.lower()}={value!r}: use true or false")
        if option in settings:
            options[option] = SWITCHES[value]
    seconds = settings.get("CONN_MAX_AGE")
    if seconds is not None and (not isinstance(seconds, int) or seconds < 0):
        raise ImproperlyConfigured(f"{name}: conn_max_age={seconds!r}: use whole seconds, or None for no limit")
    return options


def _pool(name: str, value: str) -> bool | dict[str, object]:
    """Django's option `pool`: a switch, or the arguments of psycopg_pool's ConnectionPool as JSON."""
    if value.strip().lower() in SWITCHES:
        pool = SWITCHES[value.strip().lower()]
    else:
        try:
            pool = json.loads(value)
        except ValueError:
            pool = None
        if not isinstance(pool, dict):
            raise ImproperlyConfigured(f'{name}: pool={value!r}: use true, false, or JSON such as {{"max_size": 8}}')
    if pool:
        require_pool(name)
    return pool


def require_pool(name: str) -> None:
    """Raise ImproperlyConfigured, which names a variable, unless Django can keep a pool of connections here."""
    if django.VERSION < POOLS_SINCE:
        needed = ".".join(map(str, POOLS_SINCE))
        raise ImproperlyConfigured(f"{name}: a pool needs Django {needed} or newer, and this is {django.__version__}")
    try:
        # Installed is not enough: without its C library psycopg 3 cannot be imported, and Django takes psycopg2.
        import_module("psycopg")
        import_module("psycopg_pool")
    except ImportError:
        raise ImproperlyConfigured(f"{name}: a pool needs psycopg 3: pip install 'psycopg[binary,pool]'") from None


def with_credentials(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The environment with the secrets in systemd's file (LoadCredential=), if there is one.

    Secrets replace other variables. A line of the file is `NAME=value`, as in EnvironmentFile=: quotes around a value
    are removed, and a backslash is written twice.
    """
    file = Path(environment.get("CREDENTIALS_DIRECTORY", ""), "secrets.env")
    if "CREDENTIALS_DIRECTORY" not in environment or not file.exists():
        return environment
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{file} cannot be read: {error}") from error
    pairs = [line.strip().partition("=") for line in lines if "=" in line and not line.lstrip().startswith(("#", ";"))]
    return {**environment, **{name: _unquoted(value).replace("\\\\", "\\") for name, _, value in pairs}}


def _unquoted(value: str) -> str:
    """The value without the quotes around it."""
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _refused(name: str, value: str, expected: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{name}={value!r}: use {expected}")
