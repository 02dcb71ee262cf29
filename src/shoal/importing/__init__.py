"""How a project of ARX is read: its files, words and settings."""
