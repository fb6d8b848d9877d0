"""Measurements, both sides in one run: python -m benchmarks.AREA [--quick] [--json]."""
