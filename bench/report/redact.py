"""What must not travel with a report: values of names that say they are secret, and passwords in URLs."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"(?im)^(?P<name>.*?\b[\w.-]*(?:secret|password|passwd|token|api_?key)[\w.-]*[\"']?\s*[=:]\s*)(?P<value>\S.*)$"
)
_URL_PASSWORD = re.compile(r"(://[^\s:/@]*:)[^\s@/]+@")


def redacted(text: str) -> str:
    """`text` without the values of secrets, line by line."""
    return _SECRET.sub(r"\g<name>(hidden)", _URL_PASSWORD.sub(r"\1(hidden)@", text))
