"""Read the JSON Schema of a spec as a tree of what a form shows: blocks, lists, and fields with their words, units and choices. No Streamlit here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

from planner.spec.schema import BLOCK, spec_schema

Kind = Literal["block", "list", "map", "variants", "choice", "switch", "figure", "many", "json"]
"""A block of keys; a list of blocks; a block whose keys the user names; one of several shapes; one of some names; yes or no; a number or a
text, with its unit where it has one; a list of such; anything, as JSON."""
FIELDS = ("choice", "switch", "figure", "many")
"""Kinds that one widget shows, and one cell of a table."""
NUMBERS = {"number", "integer"}
Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Node:
    """A place of the schema."""

    kind: Kind
    words: str = ""
    """Its description."""
    is_required: bool = False
    has_default: bool = False
    default: Any = None
    unit: str = ""
    """SI unit; a text states its own."""
    span: str = ""
    examples: tuple[str, ...] = ()
    names: tuple[Any, ...] = ()
    """Of a choice, or of the entries of a list."""
    types: frozenset[str] = frozenset()
    """JSON types of a figure, or of the entries of a list."""
    parts: Mapping[str, Node] = field(default_factory=dict)
    inner: Node | None = None
    """Of the entries of a list or map."""
    variants: tuple[Node, ...] = ()
    mark: str = ""
    """Key of a block by which its variants are told apart."""
    least: int = 0
    """Entries of a list."""

    @property
    def is_flat(self) -> bool:
        """Tell whether a list is a table: its entries have fields alone."""
        inner = self.inner
        if self.kind != "list" or inner is None or inner.kind != "block":
            return False
        return all(part.kind in FIELDS for part in inner.parts.values())


@cache
def spec_node() -> Node:
    """Return the tree of the whole spec."""
    schema = spec_schema()
    return _node(schema, schema["$defs"])


def walked(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Yield (path, node) of a node and all within it; `[]` stands for an entry of a list, `{}` for one of a map."""
    yield path, node
    for key, part in node.parts.items():
        yield from walked(part, (*path, key))
    if node.inner is not None:
        yield from walked(node.inner, (*path, "[]" if node.kind == "list" else "{}"))
    for variant in node.variants:
        yield from walked(variant, path)


def _node(schema: Schema, defs: Schema, is_required: bool = False) -> Node:
    """Read a schema with what stands beside its reference."""
    schema = _resolved(schema, defs)
    found = _shape(schema, defs)
    return replace(
        found,
        words=str(schema.get("description") or found.words),
        is_required=is_required,
        has_default="default" in schema or found.has_default,
        default=schema.get("default", found.default),
    )


def _resolved(schema: Schema, defs: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**defs[schema["$ref"].removeprefix(BLOCK)], **beside}


def _shape(schema: Schema, defs: Schema) -> Node:
    """Choose the kind of a schema, and read its parts."""
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return _one_of([_resolved(option, defs) for option in options if option.get("type") != "null"], schema, defs)
    if "const" in schema or "enum" in schema:
        return Node("choice", names=tuple(schema["enum"]) if "enum" in schema else (schema["const"],))
    kinds = _types(schema)
    if kinds == {"boolean"}:
        return Node("switch")
    if kinds == {"array"}:
        return _list(schema, defs)
    if kinds == {"object"}:
        return _block(schema, defs)
    if kinds and kinds <= {"string"} | NUMBERS:
        return Node(
            "figure",
            unit=str(schema.get("x-unit", "")),
            span=str(schema.get("x-range", "")),
            examples=tuple(map(str, schema.get("examples", ()))),
            types=frozenset(kinds),
        )
    return Node("json")


def _types(schema: Schema) -> set[str]:
    found = schema.get("type", ())
    return {found} if isinstance(found, str) else set(found) - {"null"}


def _one_of(options: Sequence[Schema], schema: Schema, defs: Schema) -> Node:
    """Read one of several schemas: fields become one field, others are variants."""
    nodes = [_node(option, defs) for option in options]
    if len(nodes) == 1:
        return nodes[0]
    if all(node.kind == "choice" for node in nodes):
        return Node("choice", names=tuple(name for node in nodes for name in node.names))
    if all(node.kind in ("choice", "figure") for node in nodes):
        named = tuple(str(name) for node in nodes for name in node.names)
        types = frozenset[str]().union(*(node.types or {"string"} for node in nodes))
        first = next(node for node in nodes if node.kind == "figure")
        return replace(first, types=types, examples=(*named, *first.examples))
    return Node("variants", variants=tuple(nodes), mark=str(schema.get("discriminator", {}).get("propertyName", "")))


def _list(schema: Schema, defs: Schema) -> Node:
    item = _node(schema.get("items", {}), defs)
    least = int(schema.get("minItems", 0))
    if item.kind in ("choice", "figure"):
        kept = replace(item, kind="many", words="", default=None, has_default=False, least=least)
        return kept if schema["items"].get("anyOf") is None else Node("json")
    return Node("list", inner=item, least=least) if item.kind in ("block", "variants") else Node("json")


def _block(schema: Schema, defs: Schema) -> Node:
    if properties := schema.get("properties"):
        required = schema.get("required", ())
        return Node("block", parts={key: _node(each, defs, key in required) for key, each in properties.items()})
    named = schema.get("additionalProperties")
    if not isinstance(named, Mapping):
        named = next(iter(schema.get("patternProperties", {}).values()), None)
    if not isinstance(named, Mapping):
        return Node("json")
    return Node("map", inner=_node(named, defs))
