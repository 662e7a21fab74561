"""Timings against peers; each module runs as ``python -m benchmarks.NAME`` from the root."""
