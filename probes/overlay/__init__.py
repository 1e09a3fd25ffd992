"""What the instrument alone lays over another project, over `overlay`: the probes and their URLs."""
