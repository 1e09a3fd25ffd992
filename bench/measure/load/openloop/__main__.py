"""python -m bench.measure.load.openloop JOB.json: HTTP load at a fixed rate, or as fast as the responses come.

JOB.json holds the fields of bench.measure.load.openloop.job.LoadJob: with a rate an open loop, else a closed loop.
The figures go to stdout as one JSON object.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.measure.load.engine import encoded
from bench.measure.load.openloop.job import LoadJob
from bench.measure.load.openloop.parallel import make

if __name__ == "__main__":
    print(json.dumps(encoded(make(LoadJob(**json.loads(Path(sys.argv[1]).read_text("utf-8")))))))
