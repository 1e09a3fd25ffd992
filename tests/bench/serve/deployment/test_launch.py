"""The start of a program on this machine: with its own variables, and with the limits of its unit."""

from __future__ import annotations

import subprocess
import sys

from tests.skips import needs

# A program that writes its limits of open files and a variable, started with a few files by default and more allowed.
START = """
import sys
from pathlib import Path
from bench.serve.deployment.launch import Launcher
from bench.serve.deployment.layout import Layout
from bench.serve.deployment.program import Program
from bench.serve.machine.identity import Identity
from bench.serve.machine.orphans import Register

folder = Path(sys.argv[1])
(folder / "logs").mkdir()
words = ["/bin/sh", "-c", "ulimit -Sn; ulimit -Hn; echo $NAME"]
with Register(folder) as register:
    launcher = Launcher(Identity("", 0, 0, ()), Layout(folder, folder), register)
    program = Program("limits", "", words, "", "TERM", 1, env={"NAME": "its own"})
    launcher.start(program, {"NAME": "of all", "PATH": "/bin"}).popen.wait()
"""


def test_a_program_has_its_own_variables_and_as_many_open_files_as_allowed(tmp_path):
    needs("prlimit")
    words = ["prlimit", "--nofile=100:4000", "--", sys.executable, "-c", START, str(tmp_path)]
    subprocess.run(words, check=True)
    assert (tmp_path / "logs" / "limits.log").read_text().splitlines() == ["4000", "4000", "its own"]
