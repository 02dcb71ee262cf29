"""Searches over cuts through hierarchies: top-down specialization and bottom-up generalization."""
