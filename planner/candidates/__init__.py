"""Choose operating points: enumerate fleet options and layouts, evaluate them, and drop dominated ones."""
