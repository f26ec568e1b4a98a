"""Bounds of a whole program from a part of it that is small enough to be searched."""
