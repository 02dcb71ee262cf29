"""What an attack and successive releases stand on: which values a label covers, and which records fit."""
