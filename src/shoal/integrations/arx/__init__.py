"""Import of ARX projects: their files, model names and settings."""
