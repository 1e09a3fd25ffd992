"""Proofs of parts of this project, each a program: `python -m tests.proofs.<name> --help`."""
