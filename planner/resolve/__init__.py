"""Resolve a spec and the catalog into a problem."""
