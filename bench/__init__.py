"""The instrument: plans, serves, verifies, loads and reports. Knows HTTP, files and subprocesses, never Django."""

import os
import sys

__version__ = "0.1.0"

# The command as called, installed or in the clone, so that a printed command line can be pasted.
PROGRAM = "python -m bench"
if os.path.split(sys.argv[0])[1] == "benchapp":
    PROGRAM = "benchapp"
