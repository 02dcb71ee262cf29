"""Integrations with other programs: import of ARX projects, and a scikit-learn transformer."""
