"""Utility: a table and its release, compared column by column and pair by pair."""
