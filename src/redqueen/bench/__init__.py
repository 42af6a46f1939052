"""Benchmarks: each one side by side with what a user would pick instead, in one run."""
