"""Read the keys of the JSON Schema of a spec, and fill it: a second way beside the form's own, which shares no code with it."""

from __future__ import annotations

from typing import Any


def _options(schema: dict[str, Any], defs: dict[str, Any]) -> list[dict[str, Any]]:
    """The schemas that a value may have, without null and without references."""
    if "$ref" in schema:
        return _options(defs[schema["$ref"].rpartition("/")[2]], defs)
    among = schema.get("anyOf") or schema.get("oneOf")
    if among:
        return [each for option in among for each in _options(option, defs)]
    return [] if schema.get("type") == "null" else [schema]


def keys_of_schema(schema: dict[str, Any]) -> set[tuple[str, ...]]:
    """Every path of keys; `[]` for an entry of a list of blocks, `{}` for an entry whose name the user chooses."""
    defs, found = schema["$defs"], set()

    def walk(each: dict[str, Any], path: tuple[str, ...]) -> None:
        if path:
            found.add(path)
        for option in _options(each, defs):
            for key, inner in option.get("properties", {}).items():
                walk(inner, (*path, key))
            named = option.get("additionalProperties") or next(iter(option.get("patternProperties", {}).values()), None)
            if isinstance(named, dict):
                walk(named, (*path, "{}"))
            if "items" in option and any("properties" in entry for entry in _options(option["items"], defs)):
                walk(option["items"], (*path, "[]"))

    walk(schema, ())
    return found


def filled(schema: dict[str, Any], variant: int = 0) -> dict[str, Any]:
    """A document with every key that the schema has, one entry in each list and map, and where there are several shapes that of number `variant`."""
    defs = schema["$defs"]

    def value(each: dict[str, Any]) -> Any:
        options = _options(each, defs)
        option = options[min(variant, len(options) - 1)]
        if "properties" in option:
            return {key: value(inner) for key, inner in option["properties"].items()}
        named = option.get("additionalProperties") or next(iter(option.get("patternProperties", {}).values()), None)
        if isinstance(named, dict):
            return {"USD": value(named)}
        if "const" in option:
            return option["const"]
        if "enum" in option:
            return option["enum"][0]
        match option.get("type"):
            case "boolean":
                return True
            case "array":
                return [value(option["items"])]
            case "integer" | "number":
                return 1
            case "object":
                return {}
        return (option.get("examples") or ["x"])[0]

    return value({"properties": schema["properties"]})
