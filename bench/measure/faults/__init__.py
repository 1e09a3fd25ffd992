"""Faults: what visitors notice when something is replaced or breaks while they ask."""
