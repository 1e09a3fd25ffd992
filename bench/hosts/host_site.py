"""The site as a deployed web host has it: its commands run there, in the environment that its units get."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from bench.hosts import ssh
from bench.production.inventory import Host
from bench.project.under_test import UnderTest
from bench.verify.rows import Row
from bench.verify.site import NOT_PLAIN, ROLES, Site, described_urls
from bench.verify.target_site import NO_COMMANDS, NoExpectedPages

TIMEOUT_S = 60.0
# `benchapp-manage` needs to be root.
MANAGE = ssh.AS_ROOT + "exec $sudo benchapp-manage shell -c {code}"
# The probes are installed for that one command: the servers have none.
WITH_PROBES = (
    "import os, sys; os.environ['BENCHAPP_PROBES'] = '1'; "
    "os.execv(sys.executable, [sys.executable, 'manage.py', *{words!r}])"
)


@dataclass(frozen=True)
class HostSite(Site):
    """The site of one web host; its accounts and rows are those of all.

    Naming an inventory lets checks make rows of their own there, which they remove.
    """

    may_write: bool = True
    host: Host | None = None

    @property
    def own(self) -> bool:
        return True

    @property
    def html_paths(self) -> list[str]:
        """The public pages of each kind: none is rendered in process, so nothing is compared with that."""
        kinds = [kind for kind in self.urls if not kind.endswith(NOT_PLAIN) and kind not in (*ROLES, "health")]
        return list(dict.fromkeys(self.urls[kind] for kind in kinds))

    def outdated_paths(self) -> list[str]:
        return []

    def make_row(self) -> Row:
        """A new author with a post and a comment; raises BenchError when that fails."""
        return Row(**self._command(["proberows", "make"], None))

    def written(self, row: Row, what: str) -> Row:
        """Do `what` to the row; returns it as it is then."""
        return Row(**self.write_row(row.author, what, {}))

    def at(self, host: Host) -> HostSite:
        """The same site, its commands run on another host."""
        return replace(self, host=host)

    def _command(self, words: list[str], env: Mapping[str, str] | None, *, reads: bool = True) -> Any:
        assert self.host
        script = MANAGE.format(code=shlex.quote(WITH_PROBES.format(words=words)))
        said = ssh.run(self.host, script, TIMEOUT_S, f"manage.py {words[0]}")
        if not reads:
            return None
        try:
            # The shell of some versions of Django says first what it has imported.
            return json.loads(said[said.index("{") :])
        except ValueError:
            why = f"printed {said[:80]!r}, not a JSON object"
            raise BenchError(f"{self.host.name}: manage.py {words[0]}: {why}") from None


def learn(host: Host, project: UnderTest) -> HostSite:
    """The site with its URLs, as the host's own command knows them; raises BenchError when that fails."""
    static_url, said = project.names["static_url"], project.description
    site = HostSite({}, NoExpectedPages(), Path(), static_url, NO_COMMANDS, description=said, host=host)
    return replace(site, urls=described_urls(said) | site._command(["siteurls"], None))
