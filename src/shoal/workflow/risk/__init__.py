"""Risk: classes, special uniques, and their presentation."""
