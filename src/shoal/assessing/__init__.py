"""What risk is made of: classes, special uniques, and how their figures are told."""
