"""Run the project's own commands, `manage.py ...`, as a person would."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shlex
import subprocess
from pathlib import Path

import msgspec

from bench.errors import BenchError
from bench.serve.machine import lock
from bench.serve.machine.identity import Identity
from bench.serve.project import inspection, run_command
from bench.serve.project.description import FILE
from bench.serve.project.opened import FILES, UnderTest
from bench.serve.project.run_command import INHERITED, Interpreter

# The list that a storage with hashed names writes, and what `collectstatic --dry-run` says of a file to copy.
COLLECT, MANIFEST, PRETENDS = "collectstatic", "staticfiles.json", "Pretending to "
NO_ROWS = "sqlite:///:memory:"
# And which file names one that is not there.
POST_PROCESSED = re.compile("Post-processing '(.+)' failed!")
# The words of collectstatic about code that needs rows, and the remedy.
NO_TABLE = "no such table"
AT_IMPORT = "; there are no rows yet: have the code query its database when used, not when apps are loaded"
# The instrument's own commands live in an app that the served site does not need to install.
COMMANDS_ENV = {"BENCHAPP_PROBES": "1"}


def clean_environment(home: Path) -> dict[str, str]:
    """The base environment of every program, with `home` as its home directory."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    # Temporary files that a server leaves behind are removed with the deployment.
    places = {"HOME": str(home), "TMPDIR": str(home)}
    return {"LANG": "C.UTF-8", **inherited, **places, "PYTHONDONTWRITEBYTECODE": "1"}


def site_environment(project: UnderTest, database_url: str, home: Path | None = None) -> dict[str, str]:
    """The environment of one of the site's commands on that database, without any layer."""
    return {
        **clean_environment(home or project.var),
        "DATABASE_URL": database_url,
        "BENCHAPP_STATIC_ROOT": str(project.static_root),
        # A separate key: nothing signed outlives it, and the key file may be closed to the servers.
        "SECRET_KEY": secrets.token_urlsafe(50),
        "DJANGO_SETTINGS_MODULE": project.settings,
    }


def interpreter(project: UnderTest, identity: Identity) -> Interpreter:
    """The interpreter for the project's commands as this user."""
    return Interpreter(identity.prefix, project.python, project.folder / "manage.py")


def warm_up(project: UnderTest) -> None:
    """Prepare for several commands of the site, each of which is then cheaper."""
    env = project.environment({**clean_environment(project.var), **COMMANDS_ENV})
    run_command.warm_up(interpreter(project, project.worker()), env)


def manage(
    project: UnderTest,
    words: list[str],
    env: dict[str, str],
    identity: Identity,
    *,
    show: bool = False,
    timeout_s: float | None = None,
) -> str:
    """Run `manage.py` with `words` in this environment and return the output; with `show`, the output goes to standard
    error.

    Raises BenchError with the command's last line if the command fails, or does not end in time.
    """
    done = _finished(project, words, env, identity, timeout_s, show=show)
    if done.returncode != 0:
        raise BenchError(f"manage.py {' '.join(words)} failed: {_why(done, identity)}")
    return done.stdout or ""


def _finished(
    project: UnderTest,
    words: list[str],
    env: dict[str, str],
    identity: Identity,
    timeout_s: float | None,
    *,
    show: bool = False,
) -> subprocess.CompletedProcess[str]:
    what, environment = f"manage.py {words[0]} of {project.folder}", project.environment({**env, **COMMANDS_ENV})
    waiting: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if timeout_s:
        waiting = run_command.announced(what, timeout_s)
    try:
        with waiting:
            return run_command.run(interpreter(project, identity), words, environment, timeout_s, show=show)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{what} does not end within {timeout_s:g} s; find out why it hangs") from None


def _why(done: subprocess.CompletedProcess[str], identity: Identity) -> str:
    """The output of a failed command, with a remedy if one is known."""
    why = run_command.problem(done.stderr or "") or f"it exited with status {done.returncode}"
    if why.startswith("PermissionError"):
        return f"{why}; let user {identity.user} read it, which the servers run as, or set BENCH_USER"
    if refers := POST_PROCESSED.search(done.stderr or ""):
        return f"{refers[1]}: {why}"
    if inspection.LACKS_VARIABLE.search(why):
        return f"{why}; {inspection.WRITE_VARIABLE}"
    if COLLECT in done.args and NO_TABLE in why:
        return why + AT_IMPORT
    return why


def check(
    project: UnderTest,
    database_url: str,
    env: dict[str, str],
    identity: Identity,
    *,
    settings_only: bool = False,
    again: bool = False,
) -> None:
    """Have the site check these settings and that database, once for the same pair unless `again`.

    Raises BenchError with the site's message if the check fails.
    """
    question = ("check", project.version, database_url, tuple(sorted(env.items())), settings_only)
    if question in project.memo and not again:
        return
    words = shlex.split(project.description.check)
    if settings_only:
        # Any command reads the settings first.
        words = ["diffsettings"]
    given = {**site_environment(project, database_url), **env}
    done = _finished(project, words, given, identity, run_command.IMPORT_TIMEOUT_S)
    if done.returncode != 0:
        raise BenchError(_why(done, identity).removeprefix("CommandError: ").removeprefix("manage.py: "))
    project.memo[question] = True


def collect_static(project: UnderTest, identity: Identity, again: bool = False) -> None:
    """Collect the static files if a source is newer than its copy or the list of files is missing; then run the
    project's `build` commands.

    Other processes may read the list meanwhile, so it is only written if needed. A process looks once, unless `again`.
    """
    if COLLECT in project.memo and not again:
        return
    project.static_root.mkdir(parents=True, exist_ok=True)
    if not project.overlaid or COLLECT in project.facts.commands:
        _collect(project, identity)
    for command in project.description.build:
        identity.give_tree(project.static_root)
        manage(project, shlex.split(command), site_environment(project, NO_ROWS), identity)
    project.memo[COLLECT] = True


def _collect(project: UnderTest, identity: Identity) -> None:
    words, unfinished = [COLLECT, "--noinput"], project.var / "static.unfinished"
    env = site_environment(project, NO_ROWS)

    def collected() -> bool:
        listed = (project.static_root / MANIFEST).is_file() and not unfinished.exists()
        return listed and PRETENDS not in manage(project, [*words, "--dry-run", "--verbosity", "1"], env, identity)

    if collected():
        return
    # Two that collect into one folder at once would delete each other's files.
    with lock.exclusive(project.var / "static.lock", f"{project.static_root}"):
        if collected():
            return
        unfinished.touch()
        identity.give_tree(project.static_root)
        manage(project, [*words, "--verbosity", "0"], env, identity)
        unfinished.unlink(missing_ok=True)


def make_files(project: UnderTest, identity: Identity) -> None:
    """Make the folders of the project's logs, file caches and uploads, before any of its commands writes there."""
    if project.overlaid:
        for folder in (project.var / FILES, project.media_root):
            folder.mkdir(parents=True, exist_ok=True)
            identity.give_tree(folder)


def link_media(project: UnderTest, identity: Identity) -> None:
    """Have the project find its uploaded files as links in the folder of new uploads: its own stays unchanged."""
    if not project.overlaid or project.facts.media_root is None:
        return
    source = project.facts.media_root
    project.media_root.mkdir(parents=True, exist_ok=True)
    for path in Path(source).rglob("*"):
        link = project.media_root / path.relative_to(source)
        if path.is_dir() and not path.is_symlink():
            link.mkdir(exist_ok=True)
        elif not os.path.lexists(link):
            link.symlink_to(path)
    identity.give_tree(project.media_root)


def static_names(project: UnderTest) -> dict[str, str]:
    """The hashed name of every static file by its plain name, from the last collection.

    Without a storage with hashed names, each file keeps its name.
    """
    manifest = project.static_root / MANIFEST
    if project.static_root.is_dir() and not manifest.exists():
        relative_paths = (
            path.relative_to(project.static_root) for path in project.static_root.rglob("*") if path.is_file()
        )
        return {str(path): str(path) for path in relative_paths}
    try:
        names: dict[str, str] = json.loads(manifest.read_text("utf-8"))["paths"]
    except (OSError, ValueError, KeyError):
        raise BenchError(f"{manifest}: no collected static files; run ./manage.py collectstatic") from None
    return names


def rows(project: UnderTest, database_url: str, identity: Identity) -> tuple[int | None, int | None]:
    """The number of rows of the project, and their seed; None if unknown."""
    command = project.description.rows
    if command is None:
        return None, None
    printed = manage(project, shlex.split(command), site_environment(project, database_url), identity)
    try:
        counts = msgspec.json.decode(printed, type=dict[str, int | None])
    except msgspec.DecodeError:
        raise BenchError(
            f"manage.py {command}: printed {printed[:80]!r}, not numbers of rows as JSON; correct rows in {FILE}"
        ) from None
    seed = counts.pop("seed", None)
    return sum(number or 0 for number in counts.values()), seed
