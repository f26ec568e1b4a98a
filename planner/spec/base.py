"""Base class of the blocks of a spec, and conversion of pydantic's errors into places and remedies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.errors import Issue, close_matches, path_text, words_of
from planner.messages import Message
from planner.spec.quantities import shown

MOST_ENTRIES = 1000  # entries of any list
SOME: Any = Field(min_length=1, max_length=MOST_ENTRIES)


class Block(BaseModel):
    """A part of the spec: unknown keys are refused, values never change after parsing.

    The strings below its fields are read from the source where a schema is printed (`planner.spec.schema`), so that other runs need not wait.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


# arguments that the sentence of each of pydantic's kinds of error has
_CONTEXT = {
    "greater_than_equal": "ge",
    "less_than_equal": "le",
    "greater_than": "gt",
    "less_than": "lt",
    "literal_error": "expected",
    "too_short": "min_length",
    "too_long": "max_length",
    "string_too_long": "max_length",
    "float_type": "",
    "string_type": "",
    "bool_type": "",
    "list_type": "",
    "dict_type": "",
    "model_type": "",
    "model_attributes_type": "",
    "string_too_short": "",
    "string_pattern_mismatch": "",
    "finite_number": "",
    "int_parsing": "",
    "int_parsing_size": "",
    "float_parsing": "",
}


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[Issue]:
    """List every problem of a document that does not parse as `model`."""
    return [_problem(item, model) for item in error.errors()]


def first_of(error: ValidationError) -> str:
    """Return the first sentence of an error, without its place."""
    item = error.errors()[0]
    return words_of(item["ctx"]["error"]) if item["type"] == "value_error" else str(item["msg"])


def _problem(item: Mapping[str, Any], model: type[BaseModel]) -> Issue:
    """Turn a pydantic error into a place and a remedy in the user's words."""
    location = [part for part in item["loc"] if part != "[key]"]
    tag = {"workloads": 2, "workload": 1}.get(str(location[0]) if location else "", 0)
    blocks = location[:-1]
    if tag and len(location) > tag:
        del location[tag]  # the discriminator, which is no key of the user's
    kind = item["type"]
    if kind == "extra_forbidden":
        known = _known_keys(blocks, model)
        return Issue(
            path_text(location),
            Message.of(
                "spec.unknown_key", close=close_matches(str(location[-1]), known), known=", ".join(known)
            ).text(),
        )
    if kind == "missing":
        return Issue(path_text(location), Message.of("spec.missing").text())
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return Issue(path_text([*location, "kind"]), Message.of("spec.kind_expected").text())
    if kind == "value_error":
        return Issue(path_text(location), words_of(item["ctx"]["error"]))
    return Issue(path_text(location), _expected(item).text())


def _expected(item: Mapping[str, Any]) -> Message:
    """Say what pydantic expected in place of what was given; an error of a kind that we do not know is quoted."""
    kind, given = item["type"], shown(item.get("input"))
    if kind not in _CONTEXT:
        return Message.of("spec.expected_other", words=item["msg"].replace("Input should be", "expected"), given=given)
    name = _CONTEXT[kind]
    return Message.of(f"spec.expected_{kind}", given=given, **({name: str(item["ctx"][name])} if name else {}))


def _known_keys(location: Sequence[str | int], model: type[BaseModel]) -> list[str]:
    """List the keys of the block at `location`, found by walking the field types; after the kind of a workload, of that kind alone."""
    blocks = [model]
    for part in location:
        if isinstance(part, int):
            continue
        if of_kind := [block for block in blocks if part in _kinds(block)]:
            blocks = of_kind
            continue
        found: list[type[BaseModel]] = []
        for block in blocks:
            if part in block.model_fields:
                found += _blocks_in(block.model_fields[part].annotation)
        blocks = found or blocks
    return sorted({field.alias or name for block in blocks for name, field in block.model_fields.items()})


def _kinds(block: type[BaseModel]) -> tuple[str, ...]:
    """Return the values that the field `kind` of a block may have; none without such a field."""
    return getattr(block.model_fields["kind"].annotation, "__args__", ()) if "kind" in block.model_fields else ()


def _blocks_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [block for part in getattr(annotation, "__args__", ()) for block in _blocks_in(part)]
