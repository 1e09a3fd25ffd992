"""The instrument: plans, serves, verifies, loads and reports. It knows HTTP, files and subprocesses, never Django."""

__version__ = "0.1.0"
