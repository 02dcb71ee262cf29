"""The work of one user on one table, independent of the web server and the pages."""
