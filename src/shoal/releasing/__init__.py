"""How a release comes about: what is wished, found, written beside its target and put in place."""
