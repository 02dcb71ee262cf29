"""How a release comes about: what is to be done, found, written beside its target and put in place."""
