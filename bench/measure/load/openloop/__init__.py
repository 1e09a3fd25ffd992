"""The built-in load tool: an open loop and a closed loop over HTTP/1.1.

Its adapter (bench.measure.load.engine) starts it as a program, like any other load tool. bench.measure.hosts starts it
on several hosts, and is the only other user of its modules. All modules except `__main__` need only Python.
"""

VERSION = "2.0"
