"""Costs of a host of an inventory in the timed load of a trial. ``None`` means "not measured"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from bench.means import means


@dataclass(frozen=True, kw_only=True)
class HostCosts:
    """Costs of one host: of the kit's units (benchapp.slice), of PostgreSQL, and of its link."""

    sampled_s: Annotated[float | None, means("Seconds over which the host was sampled.")] = None
    cores: Annotated[
        float | None, means("Processor cores of the host, or as many as its limit of CPU time allows.")
    ] = None
    cpu_seconds: Annotated[
        float | None, means("CPU seconds, user and system, that the kit's units and PostgreSQL used in the timed load.")
    ] = None
    memory_bytes: Annotated[
        int | None, means("Memory that the kit's units may use: their limit, or all of the host's.")
    ] = None
    memory_peak_bytes: Annotated[
        int | None,
        means(
            "Largest memory of the kit's units and PostgreSQL seen, in bytes, except files that the kernel drops first."
        ),
    ] = None
    received_bytes: Annotated[
        int | None, means("Bytes received by the network interface that has the address of the host.")
    ] = None
    sent_bytes: Annotated[int | None, means("Bytes sent by that interface.")] = None
    link_bits_per_second: Annotated[
        float | None, means("Rate of its link in each direction: of the inventory, or else of the kernel.")
    ] = None
    link_peak_share: Annotated[
        float | None,
        means("Largest share of that rate used in one direction between two samples, about a second apart."),
    ] = None
    database_connections_peak: Annotated[
        int | None, means("Largest number of client connections to its PostgreSQL seen; only of the database's host.")
    ] = None
    requests: Annotated[int | None, means("Requests that the front passed to this web host, by its access log.")] = None
    requests_share: Annotated[float | None, means("The same as a share of the requests to all web hosts.")] = None
    not_sampled: Annotated[str | None, means("Reason for missing samples of the host; null when it was sampled.")] = (
        None
    )

    @property
    def cpu_share(self) -> float | None:
        """CPU time as a share of the capacity of its cores."""
        if self.cpu_seconds is None or not self.cores or not self.sampled_s:
            return None
        return self.cpu_seconds / (self.cores * self.sampled_s)
