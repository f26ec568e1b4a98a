"""The dashboard: one Streamlit page that shows a plan, edits its spec and solves it in a process of its own.

Not here: any computation of plans, and any import of Streamlit before the page is drawn.
"""

from __future__ import annotations


def main() -> None:
    """Draw the page; Streamlit calls this at every interaction."""
    from planner.dashboard.page import draw

    draw()
