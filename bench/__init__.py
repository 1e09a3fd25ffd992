"""The instrument: plans, serves, verifies, loads and reports. It knows HTTP, files and subprocesses, never Django."""

import os
import sys

__version__ = "0.1.0"

# The command as it was called, so that a printed command line can be pasted: installed or in the clone.
PROGRAM = "benchapp" if os.path.split(sys.argv[0])[1] == "benchapp" else "python -m bench"
