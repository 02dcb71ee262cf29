"""Releases: the recipe, the search, the files written next to the target, and their publication."""
