"""Re-identification risk: class sizes, special uniques, uniqueness in the population, and figures."""
