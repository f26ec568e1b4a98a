"""Evaluation of a given operating point or layout by the closed forms."""
