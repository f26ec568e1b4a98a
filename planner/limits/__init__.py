"""Limits in words, and how each gives way."""
