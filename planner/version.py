"""Define the version of the package."""

__version__ = "0.3.0.dev0"

RELEASED = "2026-11"
"""Month whose market the shipped figures describe, to which their age is counted."""
