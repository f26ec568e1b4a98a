"""Define the version of the package."""

__version__ = "0.3.0"

RELEASED = "2026-11"
"""Month whose market the shipped figures describe, to which their age is counted."""


def release(version: str) -> str:
    """Return the release that a version is, or leads to.

    >>> release("0.3.0"), release("0.3.0")
    ('0.3.0', '0.3.0')
    """
    return version.partition(".dev")[0]


RELEASE = release(__version__)
"""The release that this version is or leads to; plans state the version that made them."""
