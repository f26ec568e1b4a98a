"""The check of a plan against independent sums and evaluations."""
