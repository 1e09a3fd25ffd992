"""Benchmarks of parts of this project, each a program: `python -m benchmarks.<name> --help`."""
