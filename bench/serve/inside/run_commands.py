"""Run commands of a manage.py, each in a fork of one process that has imported Django: python run_commands.py

Django takes most of the time that a short command needs. Here each command begins with Django imported, and with
nothing else: settings, environment and process are the command's own, as if a shell had started it.

Standard input is a Unix socket. Each message is a byte with four files: the question (JSON: `argv`, `cwd` and `env`,
variables beside the process's own), standard output, standard error, and a pipe that gets two lines: the process, and
its end (os.waitpid). The process ends when the socket is closed. Needs Python 3.9 or newer and Django.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
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
    """Serve one question after another; returns in the process of a command, which ends as Python ends."""
    # A Ctrl-C is for the commands: what has started this process ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, _reap)
    # Where this file is: a command must not find its modules.
    del sys.path[0]
    for name in MODULES:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    gc.freeze()
    with socket.socket(fileno=0) as questions:
        while True:
            received, files, _, _ = socket.recv_fds(questions, 1, 4)
            if not received:
                return
            if os.fork() == 0:
                break
            for file in files:
                os.close(file)
        questions.detach()
    _supervise(*files)


def _reap(*_):
    """Collect the processes that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _supervise(question, output, error, ended):
    """Run the command in a child, and report its end; returns in the child only."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    process = os.fork()
    if process == 0:
        os.close(ended)
        _become(question, output, error)
        return
    os.write(ended, b"%d\n" % process)
    _, status = os.waitpid(process, 0)
    os.write(ended, b"%d\n" % status)
    os._exit(0)


def _become(question, output, error):
    """Make this process like one that a shell would have started, except for the loaded modules."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for file, standard in ((nothing, 0), (output, 1), (error, 2)):
        os.dup2(file, standard)
        os.close(file)
    with os.fdopen(question) as opened:
        asked = json.load(opened)
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    sys.argv = asked["argv"]
    sys.path.insert(0, str(Path(sys.argv[0]).absolute().parent))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
