"""What figures say: the one statistical model, capacities, and latencies."""

from bench.measure.stats.table import LEADS, MARGIN, OPEN, TIES, Decision, GeometricMean, Runs, Table

__all__ = ["LEADS", "MARGIN", "OPEN", "TIES", "Decision", "GeometricMean", "Runs", "Table"]
