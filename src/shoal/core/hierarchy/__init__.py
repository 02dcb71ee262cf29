"""Hierarchies: groups of values level by level, and the builders that make them."""
