"""The lattice of generalization levels, and counts rolled up over it."""
