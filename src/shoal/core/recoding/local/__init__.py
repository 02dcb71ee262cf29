"""Local recoding: levels are chosen separately for every class, from the top down."""
