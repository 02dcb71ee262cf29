"""Comparison of searches: the policies to run, the stored rows, and plots."""
