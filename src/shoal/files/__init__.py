"""Files: text encodings, delimiters, limits, locks, temporary folders and output paths."""
