"""Mondrian and its compiled partition."""
