"""The four published benchmarks: repeated here, their figures beside ours, and which of their conclusions hold."""
