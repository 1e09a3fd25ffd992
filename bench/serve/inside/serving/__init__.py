"""The probes and their URLs, which only the instrument adds to another project, over `benchapp_overlay`."""
