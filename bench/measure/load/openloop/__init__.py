"""The load tool of this project, always there: an open loop and a closed loop over HTTP/1.1.

Its adapter (bench.measure.load.engine) starts it as a program, like any other load tool. bench.measure.hosts.loaders
starts it on several hosts, and alone uses its modules. All of them except `__main__` need only Python.
"""

VERSION = "2.0"
