"""Commits of a project's repository, and checkouts of them."""

from __future__ import annotations

import subprocess

import pytest

from bench.errors import BenchError
from bench.serve.project import refs
from bench.serve.project.refs import Ref


def git(folder, *words):
    who = ["-c", "user.name=tests", "-c", "user.email=tests@example.org"]
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """A repository with a project in a folder of it, of two commits."""
    top = tmp_path / "repository"
    site = top / "site"
    site.mkdir(parents=True)
    git(top, "init", "--quiet", "--initial-branch=main")
    (top / ".gitignore").write_text(".env\n")
    (site / "manage.py").write_text("first\n")
    git(top, "add", ".")
    git(top, "commit", "--quiet", "--message=First")
    git(top, "branch", "feature/one")
    (site / "manage.py").write_text("second\n")
    git(top, "commit", "--quiet", "--all", "--message=Second")
    return top


def test_names_mean_commits_and_have_labels_without_slashes(repository):
    chosen = refs.choose(repository / "site", ["feature/one", "HEAD", "."])
    assert [ref.label for ref in chosen] == ["feature-one", "HEAD", "tree"]
    assert chosen[0].commit == git(repository, "rev-parse", "feature/one")
    assert chosen[2].commit == ""


@pytest.mark.parametrize("names", [["nosuch"], ["--all"], ["main", "main"], ["feature/one", "feature-one"]])
def test_a_name_that_means_no_commit_or_an_earlier_one_is_refused(repository, names):
    with pytest.raises(BenchError, match=r"^--ref "):
        refs.choose(repository, names)


def test_a_folder_without_a_repository_is_refused(tmp_path):
    with pytest.raises(BenchError, match="is in no git repository"):
        refs.choose(tmp_path, ["main"])


def test_a_checkout_has_the_files_of_its_commit_and_the_private_ones_of_now(repository, tmp_path):
    (repository / "site" / ".env").write_text("NAME=now\n")
    (ref,) = refs.choose(repository, ["feature/one"])
    before = git(repository, "status", "--porcelain"), git(repository, "worktree", "list")
    folder = refs.checkout(repository / "site", ref, tmp_path / "below")
    assert (folder / "manage.py").read_text() == "first\n"
    assert (folder / ".env").read_text() == "NAME=now\n"
    assert refs.checkout(repository / "site", ref, tmp_path / "below") == folder
    assert (git(repository, "status", "--porcelain"), git(repository, "worktree", "list")) == before


def test_a_commit_without_the_project_is_refused(repository, tmp_path):
    git(repository, "rm", "--quiet", "-r", "site")
    git(repository, "commit", "--quiet", "--message=Gone")
    (ref,) = refs.choose(repository, ["HEAD"])
    git(repository, "revert", "--no-edit", "HEAD")
    with pytest.raises(BenchError, match=r"no site/manage\.py in commit"):
        refs.checkout(repository / "site", ref, tmp_path / "below")


def test_names_of_one_commit_are_noted(repository):
    chosen = refs.choose(repository, ["main", "HEAD", "HEAD~1"])
    assert refs.notes(repository, chosen)[-1] == "main and HEAD are the same commit: expect no difference"


def test_what_is_in_no_commit_is_reported(repository):
    chosen = refs.choose(repository, ["main"])
    assert refs.notes(repository, chosen) == [f"main is commit {chosen[0].commit[:7]} Second"]
    (repository / "site" / "manage.py").write_text("third\n")
    (repository / "new.py").touch()
    assert refs.notes(repository, chosen)[-1] == "2 files are changed or new and in no commit: --ref . has them"
    assert refs.notes(repository, [*chosen, Ref("tree", "")])[-1].endswith("only tree has them")


def test_lists_of_packages_tell_whether_an_environment_can_be_shared(repository):
    before = refs.packages_digest(repository / "site")
    (repository / "site" / "requirements.txt").write_text("django\n")
    with_one = refs.packages_digest(repository / "site")
    assert with_one != before
    (repository / "uv.lock").write_text("version = 1\n")
    assert refs.packages_digest(repository / "site") not in (before, with_one)
