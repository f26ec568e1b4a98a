"""Closed forms of power, carbon and solar generation."""
