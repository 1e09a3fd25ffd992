"""Prove that a stack serves right answers: one suite of checks through its front port, the same for every stack.

The expected answers are the site's own, rendered in process. `bench.verify.checks` says what is compared and how.
"""

from bench.results.records import GROUPS
from bench.verify.check import Check, check
from bench.verify.context import Context
from bench.verify.finding import Figure, Mismatch, NotTried
from bench.verify.site import Account, Site, prepare
from bench.verify.suite import Selection, Subject, all_checks, run_suite
from bench.verify.verifier import Verifier

__all__ = [
    "GROUPS",
    "Account",
    "Check",
    "Context",
    "Figure",
    "Mismatch",
    "NotTried",
    "Selection",
    "Site",
    "Subject",
    "Verifier",
    "all_checks",
    "check",
    "prepare",
    "run_suite",
]
