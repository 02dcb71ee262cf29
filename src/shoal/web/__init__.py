"""The studio: the workflow of the command line in a browser, and as an API."""
