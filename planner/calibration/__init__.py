"""Fits of constants to measurements, and scores of the predictions."""
