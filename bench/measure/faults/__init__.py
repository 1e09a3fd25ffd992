"""Faults: effects on visitors when something is replaced or breaks under load."""
