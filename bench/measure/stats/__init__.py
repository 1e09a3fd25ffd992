"""Meaning of figures: the one statistical model, capacities, and latencies."""

from bench.measure.stats.table import INCONCLUSIVE, LEADS, MARGIN, TIES, Decision, Estimate, GeometricMean, Table

__all__ = ["INCONCLUSIVE", "LEADS", "MARGIN", "TIES", "Decision", "Estimate", "GeometricMean", "Table"]
