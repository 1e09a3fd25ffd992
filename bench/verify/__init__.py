"""Prove that a stack serves right answers: one behaviour suite through its front port, the same for every stack.

The answers expected are the site's own, rendered in process. What is compared and how is in `bench.verify.checks`, one
small function a check.
"""

from bench.verify.command import SUMMARY, Verifier, add_arguments, main
from bench.verify.outcome import GROUPS, Figure, Mismatch, NotAsked, NotTried, Outcome
from bench.verify.site import Account, Site, prepare
from bench.verify.suite import Check, Context, all_checks, check, verify_url

__all__ = [
    "GROUPS",
    "SUMMARY",
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
    "add_arguments",
    "all_checks",
    "check",
    "main",
    "prepare",
    "verify_url",
]
