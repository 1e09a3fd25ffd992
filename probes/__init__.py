"""An app beside the site, for `verify`: views that read and write inside a worker, and the instrument's commands.

It is installed only where BENCHAPP_PROBES is 1, which production values never set. Its pages are pages of the site like
any other: every caching layer treats them by the same rules, so checks can rely on them. The site never imports it.
"""
