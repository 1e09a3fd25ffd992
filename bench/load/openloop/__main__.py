"""python -m bench.load.openloop JOB.json: HTTP load at a fixed rate, or as fast as the answers come.

JOB.json holds the fields of bench.load.openloop.job.Job: with a rate an open loop, without one a closed loop.
Progress goes to stderr, the figures to stdout as one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench.load.openloop import VERSION
from bench.load.openloop.encode import encoded
from bench.load.openloop.job import Job
from bench.load.openloop.processes import make


def main() -> int:
    """Make the load of a job; returns 0 when it was made, whatever the answers were."""
    parser = argparse.ArgumentParser(prog="openloop", description=__doc__)
    parser.add_argument("job", type=Path, help="the job as JSON")
    parser.add_argument("--version", action="version", version=f"openloop {VERSION}")
    job = Job.of(json.loads(parser.parse_args().job.read_text("utf-8")))
    print(json.dumps(encoded(make(job))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
