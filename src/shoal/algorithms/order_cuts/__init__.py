"""Searches over cuts by order: k-optimize and greedy cuts."""
