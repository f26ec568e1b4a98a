"""Types of single values in a plan: strict, and finite within 1e300, so that sums of them do not overflow."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, Strict

LARGEST = 1e300

Number = Annotated[float, Strict(), Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
Whole = Annotated[int, Strict()]
Text = Annotated[str, Strict()]
Flag = Annotated[bool, Strict()]
