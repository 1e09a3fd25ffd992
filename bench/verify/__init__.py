"""Prove that a stack serves right answers: one suite of checks through its front port, the same for every stack.

The expected answers are the site's own, rendered in process. `bench.verify.checks` says what is compared and how.
"""
