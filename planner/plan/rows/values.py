"""Types of single values in a plan: strict, and finite within 1e300, so that sums of them do not overflow.

The checks are written as the core schemas that pydantic reads, so that importing a row does not import pydantic.
"""

from __future__ import annotations

from typing import Annotated, Any

from typing_extensions import TypedDict

LARGEST = 1e300


class Core:
    """Give pydantic the core schema of a type."""

    def __init__(self, **schema: Any):
        self.schema = schema

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        return self.schema


Number = Annotated[float, Core(type="float", strict=True, allow_inf_nan=False, ge=-LARGEST, le=LARGEST)]
Whole = Annotated[int, Core(type="int", strict=True)]
Text = Annotated[str, Core(type="str", strict=True)]
Flag = Annotated[bool, Core(type="bool", strict=True)]


class Coded(TypedDict):
    """State the code and the arguments of the sentence that stands beside it; an argument may be such an object too."""

    code: Text
    arguments: dict[str, Any]
