"""Our own branch and bound over the LP relaxation, warm-started."""
