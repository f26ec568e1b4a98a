"""Decomposition of large programs: first-stage variables, Benders subproblems, bounds, and the search."""
