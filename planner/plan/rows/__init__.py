"""Declare the typed rows of a plan, one class for each table, grouped by what they are about."""
