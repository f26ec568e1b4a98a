"""Fit constants to measurements, and score predictions."""
