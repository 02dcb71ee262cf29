"""The operations on tables and policies that the command line, the studio and Python share."""
