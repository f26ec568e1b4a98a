"""Base class of the blocks of a spec, and conversion of pydantic's errors into places and remedies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.errors import Issue, close_matches, path_text
from planner.spec.quantities import shown

MOST_ENTRIES = 1000  # entries of any list
SOME: Any = Field(min_length=1, max_length=MOST_ENTRIES)


class Block(BaseModel):
    """A part of the spec: unknown keys are refused, values never change after parsing.

    The strings below its fields are read from the source where a schema is printed (`planner.spec.schema`), so that other runs need not wait.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


# pydantic's kinds of error in our words
_EXPECTED = {
    "greater_than_equal": "expected a number of at least {ge}",
    "less_than_equal": "expected a number of at most {le}",
    "float_type": "expected a number",
    "string_type": "expected a text",
    "bool_type": "expected true or false",
    "list_type": "expected a list [...]",
    "dict_type": "expected an object {{...}}",
    "model_type": "expected an object {{...}}",
    "model_attributes_type": "expected an object {{...}}",
    "too_short": "expected a list with at least {min_length} entries",
    "too_long": "expected a list with at most {max_length} entries",
    "string_too_short": "expected a text that is not empty",
    "string_too_long": "expected a text of at most {max_length} characters",
    "string_pattern_mismatch": 'expected a currency as three capital letters such as "CNY"',
}


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[Issue]:
    """List every problem of a document that does not parse as `model`."""
    return [_problem(item, model) for item in error.errors()]


def _problem(item: Mapping[str, Any], model: type[BaseModel]) -> Issue:
    """Turn a pydantic error into a place and a remedy in the user's words."""
    location = [part for part in item["loc"] if part != "[key]"]
    tag = {"workloads": 2, "workload": 1}.get(str(location[0]) if location else "", 0)
    if tag and len(location) > tag:
        del location[tag]  # the discriminator, which is no key of the user's
    kind, given = item["type"], item.get("input")
    if kind == "extra_forbidden":
        known = _known_keys(location[:-1], model)
        return Issue(
            path_text(location), f"unknown key{close_matches(str(location[-1]), known)}; known here: {', '.join(known)}"
        )
    if kind == "missing":
        return Issue(path_text(location), "is missing; add it")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return Issue(path_text([*location, "kind"]), 'expected "serving", "training" or "reinforcement"')
    if kind == "value_error":
        return Issue(path_text(location), item["msg"].removeprefix("Value error, "))
    words = (
        _EXPECTED[kind].format(**item.get("ctx", {}))
        if kind in _EXPECTED
        else item["msg"].replace("Input should be", "expected")
    )
    return Issue(path_text(location), f"{words}, got {shown(given)}")


def _known_keys(location: Sequence[str | int], model: type[BaseModel]) -> list[str]:
    """List the keys of the block at `location`, found by walking the field types."""
    blocks = [model]
    for part in location:
        if isinstance(part, int):
            continue
        found: list[type[BaseModel]] = []
        for block in blocks:
            if part in block.model_fields:
                found += _blocks_in(block.model_fields[part].annotation)
        blocks = found or blocks
    return sorted({field.alias or name for block in blocks for name, field in block.model_fields.items()})


def _blocks_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [block for part in getattr(annotation, "__args__", ()) for block in _blocks_in(part)]
