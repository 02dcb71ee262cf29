"""Policies: their entries, checks and limits, how they are read from YAML, and their JSON Schema."""
