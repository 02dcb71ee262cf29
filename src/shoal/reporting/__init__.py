"""What the report of a release is made of: its parts, and the figures that it alone needs."""
