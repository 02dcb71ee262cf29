"""Every command in a file of its own, how results are shown, and what commands share."""
