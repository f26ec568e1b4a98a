"""Rows of a plan about prices."""
