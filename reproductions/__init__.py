"""The four published benchmarks: repeated here, with published figures beside ours and verdicts on each conclusion."""
