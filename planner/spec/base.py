"""The base of every block of a spec, and the blocks that say what serving keeps and guesses: prefix caches and drafts.

What they do to a replica is in `models.serving.prefix_cache` and `models.serving.speculation`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

MOST_ENTRIES = 1000  # of any list


class Block(BaseModel):
    """A part of the spec: unknown keys are refused, values never change after parsing."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True, use_attribute_docstrings=True)
