"""Strict readers of environment variables.

django-environ reads any unknown word as False and raises a traceback for a bad number. A setting with a typing error
must not silently become its default, so these readers raise ImproperlyConfigured with one line: the variable, its
value, and the values it may have.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from benchapp.caching.registry import Layer

TRUE = ("1", "true", "yes", "on")
FALSE = ("0", "false", "no", "off", "")
DATABASE_SCHEMES = ("sqlite", "postgres", "postgresql")
# Of any project, whose drivers it has itself.
ALL_DATABASE_SCHEMES = (*DATABASE_SCHEMES, *environ.Env.DB_SCHEMES)
DATABASE_FORMS = "sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME"
# What each scheme of CACHE_URL needs beyond Django itself.
CACHE_SCHEMES = {
    "locmemcache": None,
    "dummycache": None,
    "filecache": None,
    "dbcache": None,
    "memcache": "pymemcache",
    "pymemcache": "pymemcache",
    "redis": "redis",
    "rediss": "redis",
    "rediscache": "redis",
}
SECRET_KEY_CHARACTERS = 64


def flag(env: environ.Env, name: str, default: bool) -> bool:
    """A switch: 1 or 0, true or false, yes or no, on or off, in any case; empty means off."""
    value = env.str(name, default="1" if default else "0").strip().lower()
    if value in TRUE:
        return True
    if value in FALSE:
        return False
    raise ImproperlyConfigured(f"{name}={value!r} is not a switch: use 1 or 0")


def choice(env: environ.Env, name: str, choices: tuple[str, ...]) -> str:
    """One of a few words; the first is the default."""
    value = env.str(name, default="").strip() or choices[0]
    if value not in choices:
        raise ImproperlyConfigured(f"{name}={value!r} is unknown: use {' or '.join(choices)}")
    return value


def whole_number(env: environ.Env, name: str, default: int, minimum: int, maximum: int) -> int:
    """A decimal integer between minimum and maximum, both allowed."""
    value = env.str(name, default="").strip() or str(default)
    digits = value.isascii() and value.isdigit() and len(value) <= len(str(maximum))
    if not (digits and minimum <= int(value) <= maximum):
        raise ImproperlyConfigured(f"{name}={value!r}: use a whole number from {minimum} to {maximum}")
    return int(value)


def networks(env: environ.Env, name: str) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Networks with spaces between, such as 10.0.0.0/8; none when empty."""
    value = env.str(name, default="")
    try:
        return [ipaddress.ip_network(word) for word in value.split()]
    except ValueError:
        raise ImproperlyConfigured(f"{name}={value!r}: use networks with spaces between, such as 10.0.0.0/8") from None


def directory(env: environ.Env, name: str, default: Path | None, base: Path) -> Path | None:
    """An absolute path, relative ones counted from base; None when unset and without a default.

    The directory need not exist; something else of that name is refused.
    """
    value = env.str(name, default="").strip()
    if not value:
        return default
    path = (base / value).resolve()
    if path.exists() and not path.is_dir():
        raise ImproperlyConfigured(f"{name}={value!r} is not a directory")
    if path == Path(path.anchor):
        raise ImproperlyConfigured(f"{name}={value!r} is the root of the file system: use a directory of its own")
    return path


def file(env: environ.Env, name: str, base: Path) -> Path | None:
    """The absolute path of a file that need not exist, relative ones counted from base; None when unset."""
    value = env.str(name, default="").strip()
    if not value:
        return None
    path = (base / value).resolve()
    if path.is_dir():
        raise ImproperlyConfigured(f"{name}={value!r} is a directory: use a file in it")
    return path


def plain_url(env: environ.Env, name: str) -> str:
    """The address of a server as unix:/path or http://host:port/; empty when unset."""
    value = env.str(name, default="").strip()
    if not value or value.startswith("unix:/"):
        return value
    try:
        parts = urlsplit(value)
        good = parts.scheme == "http" and parts.hostname and parts.path in ("", "/") and (parts.port or 80)
    except ValueError:
        good = False
    if not good:
        raise ImproperlyConfigured(
            f"{name}={value!r} is no address of a cache: write unix:/path or http://127.0.0.1:8080/"
        )
    return value


def hosts(env: environ.Env, name: str, default: list[str]) -> list[str]:
    """A comma-separated list of host names, without scheme, port or path, for Django's ALLOWED_HOSTS."""
    values = [value.strip() for value in env.list(name, default=default) if value.strip()]
    for value in values:
        port = value.rpartition(":")[2] if not value.startswith("[") else ""
        if "/" in value or " " in value or (port != value and port.isdigit()):
            raise ImproperlyConfigured(f"{name}: {value!r} is not a host name: leave out scheme, port and path")
    return values or default


def origins(env: environ.Env, name: str) -> list[str]:
    """A comma-separated list of origins with their scheme, as Django's CSRF_TRUSTED_ORIGINS takes them."""
    values = [value.strip() for value in env.list(name, default=[]) if value.strip()]
    for value in values:
        if not value.startswith(("http://", "https://")):
            raise ImproperlyConfigured(f"{name}: {value!r} has no scheme: write it as https://example.com")
    return values


def database(
    env: environ.Env, name: str, default_file: Path, base: Path, schemes: tuple[str, ...] = DATABASE_SCHEMES
) -> dict:
    """Django's settings for the database of a URL.

    A relative SQLite file is below `base`: each server has a working directory of its own.

    The message never repeats the URL, which may hold a password.
    """
    value = env.str(name, default="").strip()
    if not value:
        value = f"sqlite:///{default_file}"
    scheme = value.partition(":")[0]
    if scheme not in schemes:
        raise ImproperlyConfigured(f"{name}: {scheme!r} is not a database of this site: use {DATABASE_FORMS}")
    try:
        if scheme == "sqlite" and not value.startswith(("sqlite:///", "sqlite://:memory:")):
            raise ValueError
        settings = env.db_url_config(value)
        unusable = not settings["NAME"]
    except (ValueError, ImproperlyConfigured):
        unusable = True
    if unusable:
        raise ImproperlyConfigured(f"{name} cannot be read as a database URL: use {DATABASE_FORMS}")
    if scheme == "sqlite" and settings["NAME"] != ":memory:":
        settings["NAME"] = str(base / settings["NAME"])
    return settings


def cache(env: environ.Env, name: str, default: str) -> dict:
    """Django's settings for the cache of a URL, with memcached through pymemcache."""
    value = env.str(name, default="").strip() or default
    scheme = value.partition(":")[0]
    if scheme not in CACHE_SCHEMES:
        raise ImproperlyConfigured(f"{name}: {scheme!r} is not a cache: use {', '.join(CACHE_SCHEMES)}")
    package = CACHE_SCHEMES[scheme]
    if package and not find_spec(package):
        raise ImproperlyConfigured(f"{name}: {scheme}:// needs a package: pip install {package}")
    try:
        for host in urlsplit(value).netloc.split(","):
            urlsplit(f"//{host}").port  # noqa: B018  raises on a port that is none
        settings = env.cache_url_config("py" + value if scheme == "memcache" else value)
    except (ValueError, ImproperlyConfigured) as error:
        raise ImproperlyConfigured(f"{name} cannot be read as a cache URL: {error}") from error
    if settings["LOCATION"] in ("", "unix:") and scheme not in ("locmemcache", "dummycache"):
        raise ImproperlyConfigured(f"{name}: {scheme}:// needs a place: a host and port, a path or a table")
    return settings


def memcached(env: environ.Env, name: str) -> str:
    """The address of a memcached, `unix:/path` or `host:port`; empty when unset. It needs pymemcache."""
    value = env.str(name, default="").strip()
    host, _, port = value.rpartition(":")
    if value and not (value.startswith("unix:/") or (host and port.isascii() and port.isdecimal())):
        raise ImproperlyConfigured(f"{name}={value!r} is no address: write unix:/path or host:port")
    if value and not find_spec("pymemcache"):
        raise ImproperlyConfigured(f"{name} needs a package: pip install pymemcache")
    return value


def caching_layers(env: environ.Env, layers: Mapping[str, Layer], base: Path) -> dict[str, dict[str, object]]:
    """The active caching layers with their options.

    A layer with options is active when CACHING_<LAYER>_<OPTION> is set for one of them, and then needs all but the
    optional ones. A layer without options is active when CACHING_<LAYER> is 1.
    """
    readers = {
        "directory": lambda name: directory(env, name, None, base),
        "file": lambda name: file(env, name, base),
        "megabytes": lambda name: whole_number(env, name, 0, minimum=0, maximum=1_048_576),
        "memcached": lambda name: memcached(env, name),
        "url": lambda name: plain_url(env, name),
    }
    active = {}
    for layer_name, layer in layers.items():
        prefix = f"CACHING_{layer_name.replace('-', '_')}".upper()
        if not layer.options:
            if flag(env, prefix, default=False):
                active[layer_name] = {}
            continue
        kinds = {**layer.options, **layer.optional}
        options = {option: readers[kind](f"{prefix}_{option.upper()}") for option, kind in kinds.items()}
        missing = [f"{prefix}_{option.upper()}" for option in layer.options if not options[option]]
        if missing and any(options.values()):
            raise ImproperlyConfigured(f"{missing[0]} is not set: the layer {layer_name} needs it")
        if not missing:
            active[layer_name] = options
    return active


def with_credentials(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The environment with the secrets that systemd hands over in a file (LoadCredential=), if it does.

    They have the last word. The file is `NAME=value` a line, as EnvironmentFile= has it: a backslash is written twice.
    """
    file = Path(environment.get("CREDENTIALS_DIRECTORY", ""), "secrets.env")
    if "CREDENTIALS_DIRECTORY" not in environment or not file.exists():
        return environment
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{file} cannot be read: {error}") from error
    pairs = [line.strip().partition("=") for line in lines if "=" in line and not line.lstrip().startswith(("#", ";"))]
    return {**environment, **{name: value.replace("\\\\", "\\") for name, _, value in pairs}}
