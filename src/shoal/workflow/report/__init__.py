"""The report of a release: its sections, and the figures that only the report needs."""
