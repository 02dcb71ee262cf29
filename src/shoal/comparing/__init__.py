"""What a comparison of searches is made of: policies to run, rows that are kept, plots."""
