"""The load tool of this project, always there: an open loop and a closed loop over HTTP/1.1.

It is a program of its own, started by its adapter (bench.measure.load.engine) like any other load tool, or on several hosts by
bench.measure.hosts.loaders, which alone uses its modules. Those but `__main__` need only Python.
"""

VERSION = "2.0"
