"""The JSON Schemas of a spec and of a case, made from their types: for editors, and as a page of keys for people."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from catalog import units
from planner.spec.model import PlanSpec
from planner.tables import as_markdown

if TYPE_CHECKING:
    from planner.spec.stack.case import Case

DIALECT = "https://json-schema.org/draft/2020-12/schema"
BLOCK = "#/$defs/"
LARGEST = 1e300  # limits beyond it only keep sums from overflowing
AMOUNTS = {"1": "a number or a percentage"}
LEAD = {
    "spec": "What `flopwatt plan` reads. Quantities are texts with their unit, such as `\"5 MW\"` or `\"0.4 USD/kWh\"`; each has its SI unit beside it.",
    "case": "What `flopwatt estimate` and `flopwatt layouts` answer. Quantities are texts with their unit; each has its SI unit beside it.",
    "kv_tiers": "What `flopwatt kv-tiers` answers. Quantities are texts with their unit; each has its SI unit beside it.",
    "edge": "What `flopwatt edge` answers. Quantities are texts with their unit; each has its SI unit beside it.",
    "claims": "What `flopwatt audit` judges. Quantities are texts with any unit that arithmetic makes; [audit.md](audit.md) says how.",
    "plan": "What `flopwatt plan SPEC --format json` prints. Amounts are in the spec's currency, quantities in SI. What the figures mean, and how they are checked: [plan.md](plan.md).",
    "codesign": "What `flopwatt codesign` answers. Quantities are texts with their unit; each has its SI unit beside it.",
}  # fmt: skip


def spec_schema() -> dict[str, Any]:
    """Build the JSON Schema of a spec. Quantities are texts whose SI unit is under `x-unit`.

    It accepts every spec that the parser accepts. Rules across fields (shares that add up, a deadline after the start)
    and names of the catalog are beyond it; `flopwatt check` knows them.
    """
    schema = _as_written(_described(PlanSpec))
    return {"$schema": DIALECT, **schema, "title": "flopwatt spec"}


def case_schema() -> dict[str, Any]:
    """Build the JSON Schema of a case, which `flopwatt estimate` and `flopwatt layouts` answer."""
    from planner.spec.stack.case import Case

    return {"$schema": DIALECT, **_of_case(Case), "title": "flopwatt case"}


def codesign_schema() -> dict[str, Any]:
    """Build the JSON Schema of a co-design case, which `flopwatt codesign` answers."""
    from planner.spec.stack.codesign import NAMES, CodesignCase

    schema = _of_case(CodesignCase)
    block = schema["$defs"]["Codesign"]["properties"]
    for name in NAMES:
        items = block[name]["items"]
        block[name]["items"] = {"anyOf": [items, {"type": "string", "minLength": 1}]}
    return {"$schema": DIALECT, **schema, "title": "flopwatt co-design case"}


def kv_tiers_schema() -> dict[str, Any]:
    """Build the JSON Schema of a case of KV tiers, which `flopwatt kv-tiers` answers."""
    from planner.spec.stack.kv_tiers_case import KvTiersCase

    return {"$schema": DIALECT, **_of_case(KvTiersCase), "title": "flopwatt case of KV tiers"}


def edge_schema() -> dict[str, Any]:
    """Build the JSON Schema of a question about the edge, which `flopwatt edge` answers."""
    from planner.spec.stack.edge import EdgeSpec

    schema = _as_written(_described(EdgeSpec))
    return {"$schema": DIALECT, **schema, "title": "flopwatt edge spec"}


def claims_schema() -> dict[str, Any]:
    """Build the JSON Schema of a file of claims, which `flopwatt audit` judges; a text or a number may stand for the block of a quantity."""
    from planner.spec.claims import Claims

    schema: dict[str, Any] = _as_written(_described(Claims))
    schema["$defs"]["Given"] = {"anyOf": [schema["$defs"]["Given"], {"type": "string"}, {"type": "number"}]}
    return {"$schema": DIALECT, **schema, "title": "flopwatt claims"}


def _of_case(case: type[Case]) -> dict[str, Any]:
    from planner.spec.stack.case import WORDS

    schema: dict[str, Any] = _as_written(_described(case))
    for name, words in WORDS.items():
        schema["properties"][name]["anyOf"] += [{"const": word} for word in words]
    return schema


def schema_text(of: str = "spec", form: str = "json") -> str:
    """Print the schema of a "spec", a "case", a "codesign" or "kv_tiers" case, an "edge" spec or "claims", as JSON or ("md") as a page of its keys."""
    schema = {
        "spec": spec_schema,
        "case": case_schema,
        "codesign": codesign_schema,
        "kv_tiers": kv_tiers_schema,
        "edge": edge_schema,
        "claims": claims_schema,
    }[of]()
    if form == "md":
        return schema_page(schema, of)
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _as_written(node: Any) -> Any:
    """Take titles from the names of fields and write defaults as a user would; blocks have none, since their fields have their own."""
    if isinstance(node, list):
        return [_as_written(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _as_written(value) for key, value in node.items()}
    default, unit = node.get("default"), node.get("x-unit")
    if "$ref" in node or default is None:
        node.pop("default", None)
    elif unit and node["type"] == "string":
        node["default"] = (
            units.show(default, unit)
            if isinstance(default, int | float)
            else f"{default[0]:g} {default[1]}/{unit.partition('/')[2]}"
        )
    for name, field in node.get("properties", {}).items():
        field["title"] = name[0].upper() + name[1:].replace("_", " ")
    return node


# -- descriptions: the strings below fields in the source, read here alone since that takes longer than reading a spec ------------------


def _described(model: type[BaseModel]) -> dict[str, Any]:
    """Build the JSON Schema of a block with the descriptions of its fields and of the fields of all blocks in it."""
    schema: dict[str, Any] = model.model_json_schema(by_alias=True)
    blocks = {block.__name__: block for block in _with_subclasses(BaseModel)}
    for name, block in (*schema.get("$defs", {}).items(), (model.__name__, schema)):
        if "properties" in block:
            for field, text in _descriptions(blocks[name]).items():
                key = blocks[name].model_fields[field].alias or field
                block["properties"][key] = dict(sorted({**block["properties"][key], "description": text}.items()))
    return schema


def _descriptions(block: type[BaseModel]) -> dict[str, str]:
    """Read the strings below the fields of a block, inherited fields too."""
    found: dict[str, str] = {}
    for each in reversed(block.__mro__):
        if issubclass(each, BaseModel) and each is not BaseModel:
            found = {
                field: text for field, text in found.items() if field not in each.__annotations__
            } | described_keys(each)
    return {field: text for field, text in found.items() if field in block.model_fields}


def described_keys(block: type) -> dict[str, str]:
    """Read the strings below the fields that a class declares itself, not for inherited fields."""
    (declared,) = ast.parse(textwrap.dedent(inspect.getsource(block))).body
    assert isinstance(declared, ast.ClassDef)
    found = {}
    for field, below in zip(declared.body, declared.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
    return found


def _with_subclasses(block: type[BaseModel]) -> list[type[BaseModel]]:
    return [block, *(each for sub in block.__subclasses__() for each in _with_subclasses(sub))]


# -- the page of keys --------------------------------------------------------------------------------------------------


def schema_page(schema: dict[str, Any], of: str) -> str:
    """Write a JSON Schema whose `$defs` are blocks as Markdown: the document itself first, then each block in the order of reference."""
    blocks, order = schema.get("$defs", {}), [schema["title"]]
    found = {schema["title"]: schema}
    for name in order:
        for other in _named(found[name]):
            if other not in found:
                found[other] = blocks[other]
                order.append(other)
    text = f"# Keys of {'claims' if of == 'claims' else f'a {of}'}\n\n{LEAD[of]} Made by `flopwatt schema {of} --format md`.\n"
    for name in order:
        block = found[name]
        text += f"\n## {name}\n" + (
            f"\n{block['description']}\n" if "description" in block and block is not schema else ""
        )
        rows = [
            {"key": f"`{key}`" + (" (required)" if key in block.get("required", ()) else ""), "takes": _takes(field), "default": _default(field), "": field.get("description") or _of_block(field, blocks)}
            for key, field in block.get("properties", {}).items() if key != "$schema"
        ]  # fmt: skip
        text += (
            "\n"
            + as_markdown(
                [{name: value.replace("|", "\\|").replace("\n", " ") for name, value in row.items()} for row in rows],
                escaped=str,
            )
            if rows
            else ""
        )
    return text


def _named(node: Any) -> Iterator[str]:
    """Yield the blocks that a node refers to, in their order."""
    if isinstance(node, list):
        for item in node:
            yield from _named(item)
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"].removeprefix(BLOCK)
        for key, item in node.items():
            if key not in ("$defs", "discriminator"):
                yield from _named(item)


def _takes(field: dict[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].removeprefix(BLOCK)
        return f"[{name}](#{re.sub(r'[^a-z0-9_-]', '', name.lower())})"
    for several in ("anyOf", "oneOf"):
        if several in field:
            return " or ".join(dict.fromkeys(_takes(part) for part in field[several] if part.get("type") != "null"))
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {_takes(field['items'])}" if "items" in field else "list"
    if field.get("type") == "object":
        part = field.get("additionalProperties") or next(iter(field.get("patternProperties", {}).values()), None)
        return f"names with {_takes(part)} each" if isinstance(part, dict) else "names with values"
    if "x-unit" in field:
        amount = AMOUNTS.get(field["x-unit"], f"quantity [{field['x-unit']}]")
        return amount + (f", {field['x-range']}" if "x-range" in field else "")
    return _plain(field)


def _plain(field: dict[str, Any]) -> str:
    kind = {"string": "text", "number": "number", "integer": "whole number", "boolean": "true or false"}.get(
        str(field.get("type")), "any value"
    )
    if field.get("format") == "date":
        kind = "date"
    ends = [
        (sign, field[name])
        for name, sign in (
            ("minimum", "from"),
            ("exclusiveMinimum", "above"),
            ("maximum", "to"),
            ("exclusiveMaximum", "below"),
        )
        if name in field and abs(field[name]) < LARGEST
    ]
    return " ".join([kind, *(f"{sign} {value:g}" for sign, value in ends)])


def _of_block(field: dict[str, Any], blocks: dict[str, Any]) -> str:
    """Return the description of the block that a field holds, alone or in a list."""
    names = list(_named(field))
    return blocks[names[0]].get("description", "") if len(names) == 1 else ""


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    return (
        ""
        if default is None or default in ("", [], {})
        else f"`{default}`"
        if not isinstance(default, bool)
        else f"`{str(default).lower()}`"
    )
