"""The variables that a project's settings need and the environment lacks; a part of inspect_project.

An import of settings ends at the first missing variable, whatever reads it. So the settings are imported again with a
value for each variable that was looked up in vain: they need the variable if the import then gets further.
"""

import contextlib
import os
import re
import sys
import traceback

from error_words import in_a_line
from inspect_kit import is_own_module
from settings_statements import lines_that_run
from time_limit import NoResponse, time_limit

# Values for a word or a number, a database, a cache, mail, an address, JSON, and a file.
VALUES = ("1", "sqlite:///:memory:", "locmemcache://", "consolemail://", "http://127.0.0.1/", "{}", "/dev/null")
# The number of variables that are tried for one error, and the time for all errors.
TRIES, LIMIT_S = 5, 6
# Errors that no variable mends.
OF_CODE = (ImportError, SyntaxError)
NAME = re.compile(r"\w+")
VARIABLE = re.compile(r"\b[A-Z][A-Z\d_]+\b")


class SettingsImport:
    """An import of settings: its error, the number of lines that ran, and the variables that were looked up."""

    def __init__(self, error, lines, looked_up):
        self.error = error
        self.lines = lines
        self.looked_up = list(dict.fromkeys(looked_up))
        self.words = []
        if error:
            self.words = VARIABLE.findall(in_a_line(error))

    @property
    def mentioned(self):
        """The variables that the text of the error names."""
        return [name for name in self.looked_up if name in self.words]

    @property
    def unset(self):
        """Variables that may be missing: those that the error names, then those that were looked up last."""
        names = dict.fromkeys([*self.words, *reversed(self.looked_up)])
        return [name for name in names if name not in os.environ and NAME.fullmatch(name)]


@contextlib.contextmanager
def lookups():
    """Yields a list that gets the name of each variable that is looked up."""
    names, usual = [], type(os.environ)

    class Noted(usual):
        def __getitem__(self, name):
            names.append(name)
            return super().__getitem__(name)

    os.environ.__class__ = Noted
    try:
        yield names
    finally:
        os.environ.__class__ = usual


def missing_variables(failed, load):
    """The variables without which an import of the settings fails, in the order of the source.

    failed  the import that failed
    load    a function that imports the settings
    """
    names = []
    with contextlib.suppress(NoResponse), time_limit(LIMIT_S):
        while failed.error and not isinstance(failed.error, OF_CODE):
            if listed := listed_as_missing(failed.error):
                names += listed
                os.environ.update(dict.fromkeys(listed, VALUES[0]))
                failed = imported(load)
                continue
            got_past = variable_given(failed, load)
            if not got_past:
                break
            name, failed = got_past
            names.append(name)
    in_order = [name for name in failed.looked_up if name in names]
    # Fields of a class are not looked up one by one.
    return list(dict.fromkeys([*in_order, *names]))


def listed_as_missing(error):
    """The unset variables that a class of settings finds missing."""
    listed = missing_fields(error) or missing_validated(error)
    return [name for name in listed if name not in os.environ and NAME.fullmatch(name)]


def variable_given(failed, load):
    """A variable with which the import gets further, and that import; None without one."""
    for name in failed.unset[:TRIES]:
        attempt = import_with(name, failed, load)
        if attempt:
            return name, attempt
        os.environ.pop(name, None)
    return None


def import_with(name, failed, load):
    """The import with a value of a variable that lets it get further, or fail otherwise; None if nothing changes."""
    otherwise = None
    for value in VALUES:
        os.environ[name] = value
        attempt = imported(load)
        if attempt.error is None or attempt.lines > failed.lines:
            return attempt
        # Several variables may be read in one line, or checked at once.
        if not otherwise and attempt.lines == failed.lines and name in failed.words and name not in attempt.words:
            otherwise = value, attempt
    if otherwise is None:
        return None
    os.environ[name], attempt = otherwise
    return attempt


def imported(load):
    """The settings, imported again."""
    for name in list(sys.modules):
        if name != "__main__" and is_own_module(name):
            del sys.modules[name]
    error = None
    with lookups() as looked_up, lines_that_run() as ran:
        try:
            load()
        except (Exception, SystemExit) as raised:
            error = raised
    return SettingsImport(error, max(ran.values(), default=0), looked_up)


def missing_fields(error):
    """The variables of the required fields that an error of pydantic-settings lists."""
    try:
        listed = error.errors()
        missing = [str(it["loc"][0]) for it in listed if str(it["type"]).endswith("missing")]
    except Exception:
        # Of another library.
        return []
    fields, prefix = set(), ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for value in frame.f_locals.values():
            kind = type(value)
            if kind.__name__ == getattr(error, "title", None) and isinstance(getattr(kind, "model_config", None), dict):
                fields, prefix = {*kind.model_fields}, kind.model_config.get("env_prefix") or ""
    for position, name in enumerate(missing):
        # An alias is the whole name.
        if name in fields:
            missing[position] = f"{prefix}{name}".upper()
    return missing


def missing_validated(error):
    """The variables of all settings found missing by validators of dynaconf; the error names the first.

    https://www.dynaconf.com/validation/
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        validators = frame.f_locals.get("self")
        if type(validators).__name__ != "ValidatorList":
            continue
        with contextlib.suppress(AttributeError):
            settings = validators.settings
            prefix = (settings.get("ENVVAR_PREFIX_FOR_DYNACONF") or "").partition(",")[0]
            names = dict.fromkeys(lacking(validators, settings))
            return [variable_of(name, prefix.upper()) for name in names]
    return []


def lacking(validators, settings):
    """The names of missing settings, required by one of the validators."""
    for validator in validators:
        if type(validator).__name__ == "AndValidator":
            yield from lacking(validator.validators, settings)
            continue
        try:
            validator.validate(settings)
        except Exception:
            for name in getattr(validator, "names", ()):
                if not settings.exists(name):
                    yield name


def variable_of(name, prefix):
    """The variable of a setting of dynaconf: DJANGO_MAIL__host for `mail.host`."""
    first, *keys = name.split(".")
    setting = "__".join([first.upper(), *keys])
    return "_".join(filter(None, [prefix, setting]))
