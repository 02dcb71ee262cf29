"""Shared code of engines that count and recode with relational queries, through Ibis or in DuckDB."""
