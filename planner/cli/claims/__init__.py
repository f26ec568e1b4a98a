"""The command `audit`: claims judged by arithmetic, and a claim written by answering questions."""

from planner.cli.claims.command import add_audit

__all__ = ["add_audit"]
