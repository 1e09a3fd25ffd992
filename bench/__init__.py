"""The instrument: plans, serves, verifies, loads and reports. It knows HTTP, files and subprocesses, never Django."""
