"""Reads a solution and builds the plan document."""
