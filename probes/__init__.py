"""Pages and writes for those who prove that a stack or a layer is right.

They exist only where BENCHAPP_PROBES is 1, which production values never set. Pages here are pages of the site like
any other: every layer treats them by the same rules, which is what they are for.
"""
