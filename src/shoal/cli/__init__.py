"""The command line: one module per command, and shared options, parsing and messages."""
