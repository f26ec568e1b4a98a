"""Check a plan against independent sums and evaluations."""
