"""The report behind each question of docs/questions.md, as a dated page below docs/reports.

Each question has one command. This module runs them, in the clone and on a quiet machine, in about 40 minutes, and
keeps the report of a run or of faults as NAME.html, any other output as NAME.txt. NAME is the anchor of the question.
Figures of the page of questions are then to be taken from these.

    python -m tests.proofs.reports
    python -m tests.proofs.reports can-slow-clients-stop-it do-i-need-nginx-in-front
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench import paths

DOCS = paths.KIT / "docs"
KEPT = DOCS / "reports"
RESULTS = paths.KIT / "results" / "reports"
WITH_REPORT = ("run", "faults")
PROJECT = "../mysite"


def questions() -> dict[str, list[str]]:
    """Anchor of each question -> the words of its command after `benchapp`."""
    by_anchor = {}
    for section in re.split(r"(?m)^## ", (DOCS / "questions.md").read_text("utf-8"))[1:]:
        title, _, text = section.partition("\n")
        anchor = re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        command = re.search(r"(?m)^benchapp (.+)$", text)
        if command:
            by_anchor[anchor] = shlex.split(command[1])
    return by_anchor


def bench(words: list[str]) -> str:
    """Run a command of the instrument and return its output; raises CalledProcessError, except for a failed check."""
    done = subprocess.run(
        [sys.executable, "-m", "bench", *words], cwd=paths.KIT, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode not in (0, 1):
        done.check_returncode()
    return done.stdout


def fresh_project(folder: Path) -> None:
    """Make what `startproject` makes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "django", "startproject", "mysite", str(folder)], check=True)


def without_files(report: str) -> str:
    """A report whose links to files of the run, which nobody keeps, are text."""
    return re.sub(r'<a [^>]*href="(?!https?:|mailto:|#)[^"]*"[^>]*>(.*?)</a>', r"\1", report, flags=re.S)


def keep(name: str, words: list[str]) -> Path:
    """Run the command of a question and keep its report; returns the kept file."""
    if PROJECT in words:
        fresh_project(RESULTS / "mysite")
        words = [str(RESULTS / "mysite") if word == PROJECT else word for word in words]
    if words[0] in WITH_REPORT:
        folder = RESULTS / name
        shutil.rmtree(folder, ignore_errors=True)
        bench([*words, "--output", str(folder)])
        bench(["report", str(folder)])
        kept = KEPT / f"{name}.html"
        kept.write_text(without_files((folder / "report.html").read_text("utf-8")), "utf-8")
        return kept
    begun = f"{datetime.now(UTC):%d %B %Y}"
    output = bench(words).replace(str(RESULTS), "..")
    kept = KEPT / f"{name}.txt"
    kept.write_text(f"{begun}\n$ benchapp {shlex.join(words)}\n{output}".replace(str(RESULTS), ".."), "utf-8")
    return kept


def main(names: list[str]) -> int:
    """Keep the reports of the named questions, by default of all."""
    known = questions()
    if unknown := [name for name in names if name not in known]:
        print(f"no such question: {', '.join(unknown)}; choose from {', '.join(known)}", file=sys.stderr)
        return 2
    KEPT.mkdir(exist_ok=True)
    for name in names or known:
        print(f"{name}: {keep(name, known[name]).relative_to(paths.KIT)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
