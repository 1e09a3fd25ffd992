"""What the instrument alone lays over another project, over `benchapp_overlay`: the probes and their URLs."""
