"""Analysis of a program: conflicts, relief of limits, and marginal values."""
