"""Diagnosis of a table: questions, findings, files of rows, and plots."""
