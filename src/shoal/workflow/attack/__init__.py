"""Attacks and successive releases: which values a label covers, and which records match."""
