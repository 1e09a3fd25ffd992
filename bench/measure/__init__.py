"""MEASURE AND BREAK: loads and faults, and what is known afterwards.

stats    the statistical model, and histograms; pure
records  the folder of a run: its records, how they are read and written
load     load tools, and the one of this project
run      plans, rounds and trials on this machine
faults   what is broken or replaced under load, and what visitors notice
hosts    trials on several hosts
report   report.json, the page and its charts, from records alone
"""
