"""The studio: the custodian's desk, in a browser; the same workflow as the command line."""
