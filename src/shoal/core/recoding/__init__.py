"""Recodings: the released values of each combination."""
