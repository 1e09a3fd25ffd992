"""The page with all findings: `python -m bench.serve.project.findings.documentation > docs/findings.md`."""

from __future__ import annotations

from bench.serve.project.findings import GROUPS, RULES
from bench.serve.project.findings.finding import Rule

INTRODUCTION = """# Findings of doctor

`benchapp doctor` looks at a Django project before you deploy it. An **error** keeps the project, or a page of it, from
being served; a **warning** costs your visitors or you something later. Each finding has an id, the line that it is
about, and the next step.

- `doctor --all` prints all of them with their documentation, `doctor --list` all that exist, `doctor --json` both as
  JSON: a `link` without a scheme, such as `docs/caching.md#what-is-never-cached`, is a page of benchapp's repository.
- `ignore = ["sqlite-locks"]` in `[tool.benchapp]` of your `pyproject.toml` leaves out findings by their ids. An id of
  one of Django's own checks, such as `security.W004`, may be there, too; the ids in `allow` are left out as well.
- `doctor` has two passes. It *reads* settings, code and URL configuration; then it *renders* pages as an anonymous
  visitor gets them, and uses the database, caches and storages. Nothing in your folder or your databases changes.
"""


def text() -> str:
    """The page, in Markdown."""
    parts = [INTRODUCTION]
    for group, about in GROUPS.items():
        rules = [_row(rule) for rule in RULES if rule.group == group]
        table = "\n".join(["| id | | pass | finding | next step |", "|---|---|---|---|---|", *rules])
        parts.append(f"## {group.capitalize()}\n\n{about[0].upper()}{about[1:]}.\n\n{table}\n")
    return "\n".join(parts)


def _row(rule: Rule) -> str:
    remedy = rule.remedy or "the finding names it"
    remedy = f"{remedy[0].upper()}{remedy[1:]}."
    cells = [f"[`{rule.id}`]({rule.link.removeprefix('docs/')})", rule.severity, rule.found_in, rule.title, remedy]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    print(text(), end="")
