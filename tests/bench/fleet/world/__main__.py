"""A world in a process of its own, for tests that signal or kill its builder; it ends with SIGINT.

python -m tests.bench.fleet.world WEB LOAD RATE [SIZE]
"""

from __future__ import annotations

import contextlib
import signal
import sys

from bench.catalog import catalog
from bench.errors import BenchError
from bench.interrupt import Interrupts, Stopped
from tests.bench.fleet.world import build, plan

web, load, rate, *size = sys.argv[1:]
members = plan.members(int(web), int(load))
limits = catalog.read().size(size[0]) if size else None
try:
    with contextlib.suppress(Stopped), Interrupts() as interrupts, build.standing(members, rate, limits) as world:
        print(f"ready {world.inventory}", flush=True)
        try:
            signal.pause()
        finally:
            # All is removed before another signal counts.
            interrupts.hold()
except BenchError as error:
    sys.exit(str(error))
