"""An app beside any project, for `verify`: views that look inside a worker, and the instrument's commands.

The app knows nothing of the project; of the kit it needs `benchapp.caching` and `benchapp_overlay`. The kit's own site
installs the app if BENCHAPP_PROBES is 1, which production values never set, together with `bench.serve.inside.site`,
which writes the site's rows. Probe pages are pages of the project like any other: every caching layer treats them by
the same rules, so checks can rely on them. No site ever imports the app, and the app imports nothing of the instrument.
"""
