"""Benchmarks of the parts. What they are compared with stands in benchmarks/ beside the package."""
