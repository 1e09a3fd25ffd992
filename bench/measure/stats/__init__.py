"""Meaning of figures: the one statistical model, capacities, and latencies."""

from bench.measure.stats.table import MARGIN, Decision, Estimate, GeometricMean, Table

__all__ = ["MARGIN", "Decision", "Estimate", "GeometricMean", "Table"]
