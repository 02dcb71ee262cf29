"""Policies: entries, checks, limits, reading of YAML, and JSON Schema."""
