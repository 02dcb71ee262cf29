"""Counts: the distinct combinations of quasi-identifier values, in memory or in an engine."""
