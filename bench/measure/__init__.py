"""MEASURE AND BREAK: loads and faults, and their results.

stats    the statistical model, and histograms; pure
records  the folder of a run: its records, read and written
load     load tools, including the built-in one
run      plans, rounds and trials on this machine
faults   faults under load, and their effects on visitors
hosts    trials on several hosts
report   report.json, the page and its charts, only from records
"""
