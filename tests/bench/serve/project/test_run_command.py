"""Commands of a manage.py, on their own and in a warm process: a command cannot tell which."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from bench.serve.project import run_command
from bench.serve.project.run_command import Interpreter
from tests.waiting import until

# Says what it can know of its process, or ends as its first word says.
MANAGE = """
import atexit, json, os, sys, time
atexit.register(lambda: print("the end"))
word = sys.argv[1]
if word == "killed":
    os.kill(os.getpid(), 9)
if word == "raises":
    raise ValueError("it fails")
if word == "exits":
    sys.exit("in one line")
if word == "slow":
    open("begun", "w").write(str(os.getpid()))
    time.sleep(600)
if word == "remembers":
    # As django.contrib.sites keeps the row of a site.
    import django
    print(getattr(django, "kept", "nothing kept"))
    django.kept = "of an earlier command"
    sys.exit(0)
import beside
variables = [os.environ.get(name) for name in ("GIVEN", "PREFIXED", "CALLERS")]
main = [__name__, __file__, sys.modules["__main__"].__name__]
print(json.dumps([sys.argv, sys.path[0], os.getcwd(), sys.stdin.read(), beside.WORD, variables, main]))
"""

# Chooses settings as those of projects do.
CHOOSES = """
import os, sys
from pathlib import Path
sys.path.append(str(Path(__file__).parent / "apps"))
os.environ.update(DJANGO_SETTINGS_MODULE="shop.settings", ADDED=os.environ["GIVEN"])
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""


@pytest.fixture(scope="module")
def manage_py(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "manage.py").write_text(MANAGE)
    (folder / "beside.py").write_text("WORD = 'beside'")
    return folder / "manage.py"


@pytest.fixture(scope="module")
def prefixed(manage_py):
    """An interpreter with a warm process."""
    interpreter = Interpreter(("env", "PREFIXED=1"), Path(sys.executable), manage_py)
    run_command.warm_up(interpreter, {"GIVEN": "at the start"})
    return interpreter


@pytest.fixture(params=["alone", "warm"])
def interpreter(request, prefixed, monkeypatch):
    """One whose commands run on their own, or in a warm process."""
    monkeypatch.setenv("CALLERS", "1")
    if request.param == "warm":
        # So that each has company.
        monkeypatch.setattr(subprocess, "run", None)
    else:
        monkeypatch.setattr(run_command, "_warm", {})
    return prefixed


def test_a_command_has_its_words_its_environment_and_its_folder(interpreter, manage_py):
    for given in ("1", "2"):
        done = run_command.run(interpreter, ["says", "ü"], {"GIVEN": given})
        printed, end = done.stdout.splitlines()
        folder, main = str(manage_py.parent), ["__main__", str(manage_py), "__main__"]
        argv = [str(manage_py), "says", "ü"]
        assert json.loads(printed) == [argv, folder, folder, "", "beside", [given, "1", None], main]
        assert (done.returncode, done.stderr, end) == (0, "", "the end")


def test_a_command_sees_nothing_that_another_kept_in_memory(interpreter):
    outputs = [run_command.run(interpreter, ["remembers"], {}).stdout.splitlines()[0] for _ in range(2)]
    assert outputs == ["nothing kept", "nothing kept"]


@pytest.mark.parametrize("name", ["HOME", "LD_LIBRARY_PATH"])
def test_what_a_process_reads_as_it_starts_holds_for_a_script(name, tmp_path, monkeypatch):
    """Packages of the user, and libraries beside those of the system."""
    (tmp_path / ".local" / "lib").mkdir(parents=True)
    monkeypatch.setattr(run_command, "_warm", {})
    run_command.warm_up_for_scripts(Path(sys.executable))
    keys = {run_command._key((sys.executable,), {**env, "GIVEN": "1"}) for env in ({}, {name: str(tmp_path)})}
    run_command.close()
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("word", "status", "output", "last"),
    [
        ("exits", 1, "the end\n", "in one line"),
        ("raises", 1, "the end\n", "ValueError: it fails"),
        ("killed", -9, "", None),
    ],
)
def test_a_command_that_fails_says_how(interpreter, word, status, output, last):
    done = run_command.run(interpreter, [word], {})
    assert (done.returncode, done.stdout) == (status, output)
    assert done.stderr.splitlines()[-1:] == [*([last] if last else [])]


# Ends as the reader of its first line says, which only one who gets the line at once can say.
SHOWN = """
import sys, time
from pathlib import Path
print("first")
for _ in range(600):
    if Path("seen").exists():
        break
    time.sleep(0.1)
else:
    print("never seen")
print("last", end="")
sys.exit("it fails")
"""


def test_lines_of_a_command_are_shown_as_they_come(tmp_path, monkeypatch):
    (tmp_path / "manage.py").write_text(SHOWN)
    lines = []

    def aside(line):
        lines.append(line)
        (tmp_path / "seen").touch()

    monkeypatch.setattr(run_command.printer, "aside", aside)
    done = run_command.run(Interpreter((), Path(sys.executable), tmp_path / "manage.py"), ["fill"], {}, show=True)
    assert lines == ["first", "last"]
    assert (done.returncode, done.stderr) == (1, "it fails\n")


def test_a_command_without_end_is_ended(interpreter, manage_py):
    begun = manage_py.parent / "begun"
    begun.write_text("")
    # On a busy machine a command may be ended before it begins.
    for timeout_s in (1, 8, 64):
        with pytest.raises(subprocess.TimeoutExpired):
            run_command.run(interpreter, ["slow"], {}, timeout_s)
        if begun.read_text():
            break
    process = int(begun.read_text())
    until(lambda: not psutil.pid_exists(process), "the end of the command")


def test_commands_of_several_threads_have_each_its_own_output(prefixed):
    with ThreadPoolExecutor(4) as pool:
        done = pool.map(lambda number: run_command.run(prefixed, ["says", str(number)], {}).stdout, range(8))
        assert [json.loads(output.splitlines()[0])[0][2] for output in done] == list(map(str, range(8)))


def test_without_the_warm_process_a_command_runs_in_a_new_one(manage_py):
    interpreter = Interpreter(("env", "OTHER=1"), Path(sys.executable), manage_py)
    first = warm_process(interpreter)
    first.kill()
    assert run_command.run(interpreter, ["says"], {}).returncode == 0
    assert warm_process(interpreter) != first


def test_after_an_interrupted_command_the_next_has_its_own_output(manage_py):
    interpreter = Interpreter(("env", "INTERRUPTED=1"), Path(sys.executable), manage_py)
    begun = manage_py.parent / "begun"
    begun.unlink(missing_ok=True)
    run_command.warm_up(interpreter, {})

    def interrupt() -> int:
        until(lambda: begun.exists() and begun.read_text(), "the command")
        os.kill(os.getpid(), signal.SIGINT)
        return int(begun.read_text())

    with ThreadPoolExecutor(1) as pool:
        process = pool.submit(interrupt)
        with pytest.raises(KeyboardInterrupt):
            run_command.run(interpreter, ["slow"], {})
        until(lambda: not psutil.pid_exists(process.result()), "the end of the interrupted command")
    assert json.loads(run_command.run(interpreter, ["says"], {}).stdout.splitlines()[0])[0][1:] == ["says"]


def test_a_command_may_have_and_write_more_than_a_pipe_holds(interpreter):
    long = "x" * 100_000
    output = run_command.run(interpreter, ["says", long], {}).stdout
    assert json.loads(output.splitlines()[0])[0][2] == long


def warm_process(interpreter: Interpreter) -> psutil.Process:
    """The one that `warm_up` starts."""
    before = set(psutil.Process().children())
    run_command.warm_up(interpreter, {})
    (started,) = set(psutil.Process().children()) - before
    return started


def test_an_interpreter_that_is_not_there_is_an_error_of_the_command(manage_py):
    interpreter = Interpreter((), Path("/no/python"), manage_py)
    run_command.warm_up(interpreter, {})
    with pytest.raises(FileNotFoundError):
        run_command.run(interpreter, ["says"], {})


def test_an_old_python_ends_before_it_takes_a_command():
    program = "import os, runpy, sys; del os.pidfd_open; runpy.run_path(sys.argv[1], run_name='__main__')"
    argv = [sys.executable, "-c", program, str(run_command.INSIDE / "run_commands.py")]
    done = subprocess.run(argv, input="{}\n", capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Gets a SIGTERM right after each fork.
TERMINATED = """
import os, runpy, signal, sys
from pathlib import Path
fork = os.fork

def terminated():
    process = fork()
    if process:
        Path(sys.argv[2]).write_text(str(process))
        os.kill(os.getpid(), signal.SIGTERM)
    return process

os.fork = terminated
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def test_a_command_ends_with_a_process_that_is_terminated_as_the_command_begins(manage_py, tmp_path):
    argv = [sys.executable, "-c", TERMINATED, str(run_command.INSIDE / "run_commands.py"), str(tmp_path / "command")]
    request = {"argv": [str(manage_py), "slow"], "cwd": str(tmp_path), "env": {}, "timeout_s": None}
    done = subprocess.run(argv, input=f"{json.dumps(request)}\n", capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    process = int((tmp_path / "command").read_text())
    try:
        until(lambda: not psutil.pid_exists(process), "the end of the command", 30)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def test_scripts_of_a_project_share_a_process_that_has_imported_django(tmp_path, monkeypatch):
    (tmp_path / "manage.py").write_text(CHOOSES)
    monkeypatch.setattr(run_command, "_warm", {})
    with pytest.MonkeyPatch.context() as patched:
        run_command.warm_up_for_scripts(Path(sys.executable))
        patched.setattr(subprocess, "run", None)
        warm = run_command.run_probe_script(Path(sys.executable), "chosen_settings.py", [], tmp_path, {"GIVEN": "1"})
    run_command.close()
    assert warm == run_command.run_probe_script(
        Path(sys.executable), "chosen_settings.py", [], tmp_path, {"GIVEN": "1"}
    )
    assert json.loads(warm[0]) == {"DJANGO_SETTINGS_MODULE": "shop.settings", "ADDED": "1", "PYTHONPATH": "apps"}


def test_it_ends_with_a_killed_caller(manage_py):
    program = (
        "import sys, time; from pathlib import Path; from bench.serve.project import run_command\n"
        "at = run_command.Interpreter((), Path(sys.executable), Path(sys.argv[1]))\n"
        "run_command.warm_up(at, {}); print(run_command.run(at, ['says'], {}).returncode, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(manage_py)], stdout=subprocess.PIPE) as caller:
        assert caller.stdout.readline() == b"0\n"
        (warm,) = psutil.Process(caller.pid).children()
        caller.send_signal(signal.SIGKILL)
    until(lambda: not warm.is_running() or warm.status() == psutil.STATUS_ZOMBIE, "its end")


TRACEBACK = """Traceback (most recent call last):
  File "x.py", line 1, in <module>
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "y.py", line 2, in <module>
    raise ImproperlyConfigured
django.core.exceptions.ImproperlyConfigured: SHOP_KEY is not set.
Set it in .env
"""


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ("", ""),
        (TRACEBACK, "django.core.exceptions.ImproperlyConfigured: SHOP_KEY is not set."),
        ("Unknown command: 'x'\nType 'manage.py help' for usage.\n", "Unknown command: 'x'"),
        ("SystemCheckError: issues:\n\nERRORS:\n?: (shop.E1) Wrong.\n\tHINT: Mend.\n\n1 issue.", "?: (shop.E1) Wrong."),
        ("a warning\nCommandError: no\n", "CommandError: no"),
    ],
)
def test_the_reason_of_a_failed_command_is_found(errors, message):
    assert run_command.problem(errors) == message


def test_a_manage_py_that_sets_the_settings_itself_is_overruled(interpreter):
    variables = {"GIVEN": "at the start", "DJANGO_SETTINGS_MODULE": "laid.over"}
    done = run_command.run(interpreter, ["migrate", "--noinput"], variables)
    assert json.loads(done.stdout.splitlines()[0])[0][1:] == ["migrate", "--settings=laid.over", "--noinput"]
