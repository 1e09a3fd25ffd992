"""Run a command of a project's manage.py, or a script of `inside`: by itself, or in a fork of a process that has
imported Django already.

A single command spends most of its time on importing Django. Callers with several begin with `warm_up`, and callers
with several scripts with `warm_up_for_scripts`.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import paths, printer

# What a program needs of the caller's environment. All else stays out: servers read their own variables
# (WEB_CONCURRENCY, PORT, FORWARDED_ALLOW_IPS, ...) that would change a stack silently.
INHERITED = ("PATH", "LANG", "LC_ALL", "TZ")
SETTINGS = "DJANGO_SETTINGS_MODULE"
# So long nobody wonders.
SILENT_S = 5.0
# Longer than the settings of any project take on a busy machine: they hang.
IMPORT_TIMEOUT_S = 120
INSIDE = paths.PACKAGE / "serve" / "inside"
# In what Django's commands and Python write when they fail.
ADVICE, CHECKS, TRACEBACK = "Type 'manage.py help", "ERRORS:", "Traceback (most recent call last):"
# Variables that Python reads as it starts: a command with others has another process.
AT_START = re.compile("PYTHON.*|LANG|LC_.*|TZ|LD_.*")
# Packages of a user, below the home directory.
USER_PACKAGES = ".local/lib"


@dataclass(frozen=True)
class Interpreter:
    """A project's interpreter and a manage.py; `prefix` stands before, and switches to another user."""

    prefix: tuple[str, ...]
    python: Path
    manage_py: Path


def run(
    interpreter: Interpreter,
    words: list[str],
    env: Mapping[str, str],
    timeout_s: float | None = None,
    *,
    show: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `manage.py` with `words`, in a warm process if there is one.

    With `show` each line of the output goes to standard error at once, and is not returned, without a limit of time.
    Raises OSError if it cannot be started, subprocess.TimeoutExpired after `timeout_s`.
    """
    # Some manage.py set the variable whatever it says.
    if env.get(SETTINGS):
        words = [words[0], f"--settings={env[SETTINGS]}", *words[1:]]
    program, folder = (*interpreter.prefix, str(interpreter.python)), interpreter.manage_py.parent
    argv = [str(interpreter.manage_py), *words]
    if show:
        return _run_shown([*program, *argv], env, folder)
    return _run_script(program, argv, folder, env, timeout_s)


def _run_script(
    program: tuple[str, ...], argv: list[str], folder: Path, env: Mapping[str, str], timeout_s: float | None
) -> subprocess.CompletedProcess[str]:
    """Run a script with arguments by an interpreter, in a warm process if there is one."""
    warm = _warm.get(_key(program, env))
    if warm and (done := warm.run(argv, folder, env, timeout_s)):
        return done
    return subprocess.run(
        [*program, *argv],
        env=env,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


def _run_shown(argv: list[str], env: Mapping[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command, and write each line of output on stderr at once."""
    with (
        tempfile.TemporaryFile("w+", errors="replace") as errors,
        subprocess.Popen(
            argv,
            env={**env, "PYTHONUNBUFFERED": "1"},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
        ) as process,
    ):
        try:
            for line in process.stdout or ():
                printer.aside(line.removesuffix("\n"))
        except BaseException:
            process.kill()
            raise
        status = process.wait()
        errors.seek(0)
        return subprocess.CompletedProcess(argv, status, None, errors.read())


def run_probe_script(
    python: Path, script: str, words: Sequence[str], folder: Path, env: Mapping[str, str]
) -> tuple[bytes, str]:
    """Run a script of `inside` by a project's interpreter in its folder; return the text written to the file in its
    first argument, and its error output. Both may be empty.

    The script gets these variables and a program's basic ones, and nothing else of the caller's environment. Raises
    OSError if it cannot be started, subprocess.TimeoutExpired if it hangs.
    """
    with tempfile.TemporaryDirectory(prefix="benchapp-command-") as scratch:
        response = Path(scratch) / "response.json"
        argv = [str(INSIDE / script), str(response), *words]
        done = _run_script((str(python),), argv, folder, {**_probe_environment(), **env}, IMPORT_TIMEOUT_S)
        written = b""
        if response.is_file():
            written = response.read_bytes()
        why = problem(done.stderr)
        if done.returncode and not why:
            why = f"exit status {done.returncode}"
        return written, why


def _probe_environment() -> dict[str, str]:
    """The basic variables of a script of `inside`."""
    inherited = {name: os.environ[name] for name in (*INHERITED, "HOME") if name in os.environ}
    return {**inherited, "PYTHONDONTWRITEBYTECODE": "1"}


def problem(errors: str) -> str:
    """The line of a Python command's standard error that says why the command failed; else empty.

    The line of the exception, which may go on for lines; of a failed check the first error; else the last line except
    for Django's advice.
    """
    lines = [line for line in errors.splitlines() if line.strip() and not line.startswith(ADVICE)]
    if CHECKS in lines:
        return next((line.strip() for line in lines[lines.index(CHECKS) + 1 :]), "")
    if TRACEBACK in lines:
        after = lines[len(lines) - lines[::-1].index(TRACEBACK) :]
        return next((line.strip() for line in after if not line.startswith(" ")), "")
    if not lines:
        return ""
    return lines[-1].strip()


@contextlib.contextmanager
def announced(what: str, timeout_s: float) -> Iterator[None]:
    """Print on stderr what is waited for, and until when, if the block takes more than a few seconds."""
    timer = threading.Timer(SILENT_S, printer.aside, [f"waiting for {what}, up to {timeout_s:g} s"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def warm_up(interpreter: Interpreter, env: Mapping[str, str]) -> None:
    """Have a process ready for commands of this interpreter, whatever the manage.py, until this one ends."""
    _warm_up((*interpreter.prefix, str(interpreter.python)), env)


def warm_up_for_scripts(python: Path) -> None:
    """Have a process ready for scripts of `inside` in any project of this interpreter, until this one ends."""
    _warm_up((str(python),), _probe_environment())


def _warm_up(program: tuple[str, ...], env: Mapping[str, str]) -> None:
    key = _key(program, env)
    if key in _warm and _warm[key].ended():
        _warm.pop(key).close()
    if key not in _warm:
        # Without the interpreter the first command says so.
        with contextlib.suppress(OSError):
            _warm[key] = _Warm(program, env)


class _Warm:
    """A process that runs one command after another, and ends when this one closes its input or ends."""

    def __init__(self, program: tuple[str, ...], env: Mapping[str, str]):
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [*program, str(INSIDE / "run_commands.py")],
            env=_at_start(env),
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        """Close the pipes, and wait for the end."""
        # There may be a command in the pipe that a process that has ended did not read.
        with contextlib.suppress(BrokenPipeError), self._process:
            pass

    def run(
        self, argv: list[str], folder: Path, env: Mapping[str, str], timeout_s: float | None
    ) -> subprocess.CompletedProcess[str] | None:
        """The command's outcome; None if the process has ended. One thread waits for the command of another."""
        request = {"argv": argv, "cwd": str(folder), "env": dict(env), "timeout_s": timeout_s}
        try:
            with self._lock:
                line = self._exchange(json.dumps(request))
        except OSError:
            return None
        if not line:
            return None
        end = json.loads(line)
        if end["status"] is None:
            raise subprocess.TimeoutExpired(argv, timeout_s or 0)
        status = os.waitstatus_to_exitcode(end["status"])
        return subprocess.CompletedProcess(argv, status, end["output"], end["error"])

    def _exchange(self, line: str) -> str:
        try:
            print(line, file=self._process.stdin, flush=True)
            if not self._process.stdout:
                return ""
            return self._process.stdout.readline()
        except BaseException:
            # Interrupted: the end of this command must not be taken for that of the next.
            self._process.terminate()
            raise


def _key(program: tuple[str, ...], env: Mapping[str, str]) -> tuple[object, ...]:
    return program, tuple(sorted(_at_start(env).items()))


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    at_start = {name: value for name, value in env.items() if AT_START.fullmatch(name)}
    home = env.get("HOME")
    if home and (Path(home) / USER_PACKAGES).is_dir():
        at_start["HOME"] = home
    return at_start


_warm: dict[tuple[object, ...], _Warm] = {}


@atexit.register
def close() -> None:
    """End the warm processes."""
    for warm in _warm.values():
        warm.close()
    _warm.clear()
