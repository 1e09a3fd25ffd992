"""Prove that a stack serves right answers: one behaviour suite through its front port, the same for every stack.

The answers expected are the site's own, rendered in process. What is compared and how is in `bench.verify.checks`, one
small function a check.
"""

from bench.verify.outcome import GROUPS, Figure, Mismatch, NotAsked, NotTried, Outcome
from bench.verify.site import Account, Site, prepare
from bench.verify.suite import Check, Context, all_checks, check, verify_url
from bench.verify.verifier import Verifier

__all__ = [
    "GROUPS",
    "Account",
    "Check",
    "Context",
    "Figure",
    "Mismatch",
    "NotAsked",
    "NotTried",
    "Outcome",
    "Site",
    "Verifier",
    "all_checks",
    "check",
    "prepare",
    "verify_url",
]
