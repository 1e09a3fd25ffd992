"""Run commands of a manage.py, each in a fork of one process that has imported Django: python run_commands.py

Django takes most of the time that a short command needs. Here each command begins with Django imported, and with
nothing else: settings, environment and process are the command's own, as if a shell had started it. A page rendered
after a write must not show what an earlier command kept in memory, such as the sites of django.contrib.sites.

Each line of standard input is a command in JSON: `argv`, `cwd`, `env` (variables beside the process's own) and
`timeout_s` (or null). Each line of standard output is its end: `status` (os.waitpid; null if the command was killed
after the timeout), `output` and `error`. The process ends with its input, or at once before Python 3.9.
Needs Django.
"""

import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import select
import signal
import sys
import tempfile
from pathlib import Path

# What every command imports, and what needs no settings to be imported.
MODULES = (
    "django.core.management.base",
    "django.core.handlers.wsgi",
    "django.contrib.auth.hashers",
    "django.contrib.staticfiles.storage",
    "django.db.backends.sqlite3.base",
    "django.db.migrations.executor",
    "django.db.models",
    "django.forms",
    "django.template.defaulttags",
    "django.template.loader_tags",
    "django.test.client",
    "django.urls",
    "django.views.debug",
)


def main():
    """Run one command after another; returns in the process of a command, which ends as Python ends."""
    # In Python 3.8 each command has a process to itself.
    if not hasattr(os, "pidfd_open"):
        return
    # A Ctrl-C is for the commands: what has started this process ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    commands, ends = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    # No module writes among the lines.
    os.dup2(2, 1)
    # Where this file is: a command must not find its modules.
    del sys.path[0]
    for name in MODULES:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    gc.freeze()
    written = functools.partial(tempfile.TemporaryFile, "w+", encoding="utf-8", errors="replace")
    for line in commands:
        request = json.loads(line)
        with written() as output, written() as error:
            # Until this process can end the command with itself.
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
            process = os.fork()
            if process == 0:
                _become(request, output, error)
                return
            status = _status(process, request["timeout_s"])
            output.seek(0)
            error.seek(0)
            end = {"status": status, "output": output.read(), "error": error.read()}
        print(json.dumps(end), file=ends, flush=True)


def _status(process, timeout_s):
    """The status of a command that has ended, and None of one that was killed after the timeout; SIGTERM ends both
    processes.
    """

    def end(*_):
        os.kill(process, signal.SIGKILL)
        os._exit(1)

    signal.signal(signal.SIGTERM, end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    ended = os.pidfd_open(process)
    in_time = select.select([ended], [], [], timeout_s)[0]
    os.close(ended)
    if not in_time:
        os.kill(process, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _, status = os.waitpid(process, 0)
    if not in_time:
        return None
    return status


def _become(command, output, error):
    """Make this process like one that a shell would have started, except for the loaded modules."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    nothing = os.open(os.devnull, os.O_RDONLY)
    for file, standard in ((nothing, 0), (output.fileno(), 1), (error.fileno(), 2)):
        os.dup2(file, standard)
    os.environ.update(command["env"])
    os.chdir(command["cwd"])
    sys.argv = command["argv"]
    sys.path.insert(0, str(Path(sys.argv[0]).absolute().parent))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
