"""What policies are made of and from: checks, words, presets, and guesses of what a column is."""
