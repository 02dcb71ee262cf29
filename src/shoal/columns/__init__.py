"""What a column holds, and whether it identifies persons, judged by its name and its values."""
