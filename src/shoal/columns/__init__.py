"""Guesses from names and values: what a column contains, and whether it identifies persons."""
