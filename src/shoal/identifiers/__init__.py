"""What tells a person: identifiers, known by the names of columns and by their values."""
