"""Name an architecture as `hf:ORG/NAME` in a spec or a case: the catalog's record, or a record of the document's own from the model's config."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from catalog.errors import CatalogError, name_key
from catalog.lookup import Catalog, shipped_catalog
from planner.errors import Issue, SpecError, issues_of, path_text
from planner.messages import Message
from planner.ways_in.hub import PREFIX, hub_config

KEYS = ("architecture", "reward", "critic")
"""Keys of specs and of cases that hold the name of an architecture."""
COPIES = frozenset((
    "instruct", "chat", "it", "base", "hf", "thinking", "fp8", "fp4", "nvfp4", "mxfp4", "awq", "gptq", "int4", "int8", "bf16", "w4a16", "w8a8",
    "dynamic", "quantized",
))  # fmt: skip
"""Last words of a model's name that leave the shape of its network as it is, in small letters."""


def known_architecture(model: str, catalog: Catalog) -> tuple[str, bool]:
    """Return (record of a model of the hub, whether it only stands for the model); an empty name if the catalog has none.

    A record is of the model if ORG/NAME is its name, alias or id on the hub, or if it has the NAME and an id of the same ORG. A record
    that shares no more than NAME stands for the model.

    >>> [known_architecture(model, Catalog.load()) for model in ("Qwen/Qwen3-32B", "another/Qwen3-32B", "a/b")]
    [('Qwen3-32B', False), ('Qwen3-32B', True), ('', False)]
    """
    model = model.removeprefix(PREFIX)
    org, _, name = model.rpartition("/")
    if catalog.has("architectures", model):
        return catalog.get("architectures", model).name, False
    if not catalog.has("architectures", name):
        return "", False
    record = catalog.get("architectures", name)
    publisher = record.words("hf_id").rpartition("/")[0]
    return record.name, org.casefold() != publisher.casefold()


def near_architecture(model: str, catalog: Catalog) -> str:
    """Return the record of the network that a model is a tuned or narrowed copy of, by its name without words such as Instruct or FP8; empty if none is.

    >>> [near_architecture(model, Catalog.load()) for model in ("Qwen/Qwen3-32B-FP8", "a/Llama-3.1-8B-Instruct-AWQ", "a/b-Instruct")]
    ['Qwen3-32B', 'Meta-Llama-3.1-8B', '']
    """
    name = model.removeprefix(PREFIX).rstrip("/").rpartition("/")[2]
    while (cut := re.search(r"[-_.]([A-Za-z0-9]+)$", name)) and cut[1].lower() in COPIES:
        name = name[: cut.start()]
        if catalog.has("architectures", name):
            return catalog.get("architectures", name).name
    return ""


def with_hub_models(
    document: Mapping[str, Any], overlays: Sequence[Path] = (), environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Replace each `hf:ORG/NAME` by a name that the document itself explains, so that it can be solved and verified again without the hub.

    A model of the catalog gets the name of its record, and a reason under `assumptions` where the record only stands for it. Any other gets a record ORG/NAME with its config.json under `catalog.architectures`, read
    once per model as `hub_config` reads it. A document without such names is returned as it is, and nothing is asked.
    Raises SpecError with the places of all models that are gated, missing or out of reach, and for an invalid overlay.
    """
    places: dict[str, list[tuple[str | int, ...]]] = {}
    for place, name in _named(document):
        places.setdefault(name, []).append(place)
    if not places:
        return dict(document)
    try:
        catalog = Catalog.load(overlays) if overlays else shipped_catalog()
    except CatalogError as error:
        raise SpecError(issues_of(error)) from None
    own = _own_records(document)
    known = {name_key(str(record.get("name"))) for record in own if isinstance(record, Mapping)}
    problems, names, added = [], {}, []
    guesses: dict[str, str] = {}
    for name, where in places.items():
        model = name.removeprefix(PREFIX)
        try:
            names[name], is_stand_in = (
                known_architecture(model, catalog) if name_key(model) not in known else (model, False)
            )
            if is_stand_in:
                reason = Message.of("ways_in.stands_for", model=model, record=names[name]).text()
                guesses |= {path_text(place): reason for place in where}
            if not names[name]:
                config, source = hub_config(name, environment)
                note = Message.of("ways_in.model_read", model=model, place=source).text()
                added.append({"name": model, "config": config, "note": note})
                names[name] = model
        except SpecError as error:
            problems += [Issue(path_text(place), each.message) for place in where for each in error.problems]
    if problems:
        raise SpecError(problems)
    found: dict[str, Any] = _renamed(document, names)
    if added:
        found["catalog"] = {**(found.get("catalog") or {}), "architectures": [*own, *added]}
    if guesses:
        found["assumptions"] = {**guesses, **(found.get("assumptions") or {})}
    return found


def _own_records(document: Mapping[str, Any]) -> list[Any]:
    """Return the architectures that a document defines; none where the block is malformed, which its reader reports."""
    block = document.get("catalog")
    found = block.get("architectures") if isinstance(block, Mapping) else None
    return found if isinstance(found, list) else []


def _named(document: Mapping[str, Any]) -> list[tuple[tuple[str | int, ...], str]]:
    """List (place, text) of each `hf:ORG/NAME` under a key that names an architecture."""
    found: list[tuple[tuple[str | int, ...], str]] = []
    left: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while left:
        place, value = left.pop()
        items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
        for key, item in items:
            if key in KEYS and isinstance(item, str) and item.strip().startswith(PREFIX):
                found.append(((*place, key), item.strip()))
            elif isinstance(item, Mapping | list):
                left.append(((*place, key), item))
    return found


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: names.get(item.strip(), item) if key in KEYS and isinstance(item, str) else _renamed(item, names)
            for key, item in value.items()
        }
    return [_renamed(item, names) for item in value] if isinstance(value, list) else value
