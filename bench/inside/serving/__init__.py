"""What the instrument alone lays over another project, over `benchapp.serving`: the probes and their URLs."""
