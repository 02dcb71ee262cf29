"""What a diagnosis is made of: questions, findings, files of rows, plots."""
