"""The content of a result, and its output as HTML, in a terminal, and as figures."""
