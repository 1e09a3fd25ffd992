"""Commits of a project's repository, each served from a separate checkout below the state folder.

A stack that serves one is a variant, `STACK@ref=main`, in plans, results and reports. Nothing is written into the
project's folder or its repository.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError
from bench.words import joined

# The tree as it is, with what is not committed.
AS_IT_IS = "."
LABEL_OF_TREE = "tree"
TIMEOUT_S = 120
# What says which packages a project needs, in the folder of its manage.py or at the top of its repository.
LISTS = ("requirements*.txt", "requirements/*.txt", "pyproject.toml", "uv.lock", "poetry.lock", "Pipfile.lock")
# Files that settings read and git ignores.
PRIVATE = ".env*"


@dataclass(frozen=True)
class Ref:
    """A commit to be served.

    label   the name in stacks and results, without slashes
    commit  the full hash; empty for the working tree
    """

    label: str
    commit: str


def choose(folder: Path, names: Sequence[str]) -> tuple[Ref, ...]:
    """The commits that these names mean in the repository of a project's folder, each once.

    Raises BenchError for a folder without a repository, and for a name of no commit.
    """
    by_label: dict[str, Ref] = {}
    for name in names:
        label = LABEL_OF_TREE
        if name != AS_IT_IS:
            label = re.sub(r"[^\w.-]", "-", name)
        if label in by_label:
            raise BenchError(f"--ref {name}: it is named {label} as another one is; name each once")
        by_label[label] = Ref(label, "")
        if name != AS_IT_IS:
            by_label[label] = Ref(label, _commit(folder, name))
    return tuple(by_label.values())


def _commit(folder: Path, name: str) -> str:
    top(folder)
    try:
        return git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").strip()
    except BenchError:
        raise BenchError(
            f"--ref {name}: {folder} has no such commit; `git branch --all` and `git tag` list some"
        ) from None


def top(folder: Path) -> Path:
    """The top of the repository; raises BenchError without a repository."""
    try:
        return Path(git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))
    except BenchError:
        raise BenchError(f"--ref: {folder} is in no git repository") from None


def left_out(folder: Path) -> int:
    """The number of changed or new files outside of any commit."""
    return len(git(folder, "status", "--porcelain", "--untracked-files=normal").splitlines())


def notes(folder: Path, refs: Sequence[Ref]) -> list[str]:
    """Describe the commit of each label, and uncommitted changes."""
    lines = []
    for ref in refs:
        if ref.commit:
            subject = git(folder, "log", "-1", "--format=%h %s", ref.commit).strip()
            lines.append(f"{ref.label} is commit {subject}")
        else:
            lines.append(f"{ref.label} is the tree as it is")
    by_commit: dict[str, list[str]] = {}
    for ref in refs:
        by_commit.setdefault(ref.commit, []).append(ref.label)
    for labels in by_commit.values():
        if len(labels) > 1:
            lines.append(f"{joined(labels, 'and')} are the same commit: expect no difference")
    if refs and (number := left_out(folder)):
        which = "--ref . has them"
        if not all(ref.commit for ref in refs):
            which = f"only {LABEL_OF_TREE} has them"
        files = f"{number} files are"
        if number == 1:
            files = "1 file is"
        lines.append(f"{files} changed or new and in no commit: {which}")
    return lines


def checkout(folder: Path, ref: Ref, below: Path) -> Path:
    """The folder of the project at a commit, in a clone below `below` that shares the repository's objects.

    Files that git ignores and settings read (.env) are copied. Raises BenchError if git fails.
    """
    repository = top(folder)
    clone = below / ref.commit[:12]
    inner = folder.resolve().relative_to(repository.resolve())
    if not (clone / ".git" / "complete").is_file():
        shutil.rmtree(clone, ignore_errors=True)
        below.mkdir(parents=True, exist_ok=True)
        git(below, "clone", "--quiet", "--shared", "--no-checkout", str(repository), str(clone))
        git(clone, "checkout", "--quiet", "--detach", ref.commit)
        (clone / ".git" / "complete").touch()
    for source, target in ((repository, clone), (folder, clone / inner)):
        for path in source.glob(PRIVATE):
            if path.is_file() and target.is_dir() and not (target / path.name).exists():
                shutil.copyfile(path, target / path.name)
    if not (clone / inner / "manage.py").is_file():
        raise BenchError(f"--ref {ref.label}: no {inner / 'manage.py'} in commit {ref.commit[:12]}")
    return clone / inner


def packages_digest(folder: Path) -> str:
    """A digest of the files that list a project's packages."""
    digest = hashlib.sha256()
    for place in dict.fromkeys((top(folder).resolve(), folder.resolve())):
        for pattern in LISTS:
            for path in sorted(place.glob(pattern)):
                digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def git(folder: Path, *words: str) -> str:
    """The output of a git command there; raises BenchError with git's last line on failure.

    The repository may belong to another user than root, and no hook or configuration there is run.
    """
    argv = ["git", "-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-C", str(folder), *words]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise BenchError("--ref: program not installed: git") from None
    except subprocess.TimeoutExpired:
        raise BenchError(f"--ref: git {words[0]} took more than {TIMEOUT_S} s") from None
    if done.returncode:
        why = (done.stderr.strip() or "failed").splitlines()[-1]
        raise BenchError(f"--ref: git {words[0]}: {why}")
    return done.stdout
