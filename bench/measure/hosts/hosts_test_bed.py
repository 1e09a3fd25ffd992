"""The hosts of an inventory as the test bed of a run. The existing deployment is measured unchanged, and stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bench.errors import BenchError
from bench.interrupt import Interrupts
from bench.measure.hosts import loaders, loaders_guards
from bench.measure.hosts.deployed_hosts import DeployedHosts
from bench.measure.hosts.loaders import Loaders, LoadShare
from bench.measure.load import LoadJob
from bench.measure.records.folder import write_json
from bench.measure.records.trials import Condition, Trial
from bench.measure.run.guards import Observed
from bench.measure.run.load_process import TrialError
from bench.measure.run.local import TrialBed
from bench.measure.run.plan import Deployment, Measurement
from bench.measure.run.progress import RunProgress
from bench.measure.run.session import Journal
from bench.measure.run.trial import BodyChecker, LoadSettings
from bench.verify.hosts.host_costs import HostCosts


class HostsTestBed(TrialBed):
    """Hosts with a running deployment, which are also the running site."""

    _loaders: Loaders

    def __init__(self, journal: Journal, progress: RunProgress, load: LoadSettings, site: DeployedHosts):
        super().__init__(journal, progress, load)
        self._site = site

    @contextmanager
    def up(self, deployment: Deployment, directory: Path, interrupts: Interrupts) -> Iterator[None]:
        """The deployment is already up."""
        with Loaders(self._site.inventory) as self._loaders:
            yield

    def make(self, item: Measurement, attempt: int) -> Trial:
        """Make a trial."""
        site = self._site
        try:
            addresses = self.addresses(site.project, item.case.workload, site.get, site.static_names)
        except BenchError as error:
            return self.failed(item, str(error))
        return self.measured(item, addresses, site.project, partial(HostsLoad, site, self._loaders))


@dataclass
class HostsLoad:
    """The load of one trial from several hosts; see bench.measure.run.trial.TrialLoad.

    shares  counts of each load host
    hosts   costs of each host
    """

    site: DeployedHosts
    loaders: Loaders
    load: LoadSettings
    directory: Path
    shares: list[LoadShare] = field(default_factory=list)
    hosts: dict[str, HostCosts] | None = None
    costs: None = None

    @property
    def url(self) -> str:
        return self.site.deployed.url

    @property
    def condition(self) -> Condition:
        return Condition(time_to_ready_s=None, hosts=self.hosts)

    def log(self) -> Path | None:
        return None

    def get(self, path: str) -> bytes:
        return self.site.get(path)

    def warm_up(self, job: LoadJob) -> None:
        """Nothing: unmeasured load is made from all load hosts right before the load, in the same play."""

    def timed(self, job: LoadJob, bodies: BodyChecker) -> Observed:
        """Warm up, make the load and note the usage of the hosts; counts of each load host are stored.

        Raises TrialError if any single host had errors or no response.
        """
        site = self.site
        try:
            loaded = self.loaders.make(
                site.job(job),
                self.directory,
                self.load.warmup_s,
                site.deployed.access_log,
                bodies.start,
            )
        except BenchError as error:
            raise TrialError(str(error)) from None
        finally:
            bodies.stop()
        self.shares, self.hosts = loaded.shares, loaded.costs
        for share in self.shares:
            clock = {"ahead_ms": share.clock.ahead_ms, "error_ms": share.clock.error_ms}
            counts = {"clock": clock, "cpu_s": share.cpu_s, **share.counts}
            write_json(self.directory / f"{share.host.name}.json", counts)
        tool = self.load.tool
        figures = loaders.figures(tool, self.shares).supported()
        for share in self.shares:
            if problem := loaders.figures(tool, [share]).failure():
                raise TrialError(f"{share.host.name}: {problem}", figures=figures)
        each = [loaders_guards.observed(tool, share, Observed(figures)) for share in self.shares]
        return Observed(figures, tool_cpu_share=max(item.tool_cpu_share or 0.0 for item in each))

    def judge(self, observed: Observed, bounds: Mapping[str, float]) -> dict[str, str]:
        """The guards' findings, with the load tool's for each load host."""
        observed = replace(observed, tool_cpu_share=None)
        return loaders_guards.evaluate(self.load.tool, observed, self.shares, self.hosts or {}, bounds)
