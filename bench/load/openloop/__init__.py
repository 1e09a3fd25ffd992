"""The open-loop load tool of this project: requests leave on a schedule, whatever the server does.

It is a program of its own, started by its adapter like any other load tool (bench.load.openloop); the instrument
imports nothing of it.
"""

VERSION = "1.0"
