"""Solve a spec at many combinations of values: which are chosen, how they are answered, and what the answers say together."""
