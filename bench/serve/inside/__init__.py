"""An app beside any project, for `verify`: views that look inside a worker, and the instrument's commands.

It knows nothing of the project; what it needs of the kit is `benchapp.caching` and `benchapp_overlay`. The kit's own
site installs it if BENCHAPP_PROBES is 1, which production values never set, together with `bench.serve.inside.site`,
which writes the site's rows. Its pages are pages of the project like any other: every caching layer treats them by the
same rules, so checks can rely on them. No site ever imports it, and it imports nothing of the instrument.
"""
