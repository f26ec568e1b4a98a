"""Names of scale-out designs as a user writes them. Not here: their structure (`models.network.designs`) and cost (`planner.problem.fabrics`)."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from catalog.units import MOST_CHARACTERS
from planner.errors import close_matches
from planner.messages import Message
from planner.spec.quantities import shown

FABRIC_DESIGNS = ("scale-up", "rail-only", "rail-optimised", "fat-tree", "torus", "dragonfly")
DEFAULT_FABRICS = ("scale-up", "rail-only", "rail-optimised", "fat-tree", "fat-tree:2")
PROVIDER = "provider"  # the fabric of a rented system comes with it
ALIASES = {"fat-tree-1:1": "fat-tree", "fat-tree-2:1": "fat-tree:2"}
TAPERED = ("rail-only", "rail-optimised", "fat-tree")
LARGEST_RATIO = 16
RATIO = r"[0-9]{1,3}(?:\.[0-9]{1,3}|/[0-9]{1,3})?"
PATTERN = rf"^(?:{'|'.join(FABRIC_DESIGNS)}|{'|'.join(ALIASES)}|(?:{'|'.join(TAPERED)}):{RATIO})$"


def fabric_name(value: Any) -> str:
    """Normalise the name of a design.

    >>> [fabric_name(name) for name in ("fat-tree-2:1", "rail-only:1", "fat-tree:1.5")]
    ['fat-tree:2', 'rail-only', 'fat-tree:3/2']
    """
    if not isinstance(value, str) or len(value) > MOST_CHARACTERS or not re.fullmatch(PATTERN, value):
        known = Message.of("spec.designs_and_ratios", names=", ".join(FABRIC_DESIGNS)).text()
        close = close_matches(value[:MOST_CHARACTERS], (*FABRIC_DESIGNS, *ALIASES)) if isinstance(value, str) else ""
        raise ValueError(Message.of("spec.design_expected", given=f"{shown(value)}{close}", known=known).text())
    kind, _, written = ALIASES.get(value, value).partition(":")
    below = written.partition("/")[2]
    ratio = Fraction(written or 1) if not below or int(below) else Fraction(0)
    if not 1 <= ratio <= LARGEST_RATIO:
        raise ValueError(Message.of("spec.ports_ratio_expected", most=LARGEST_RATIO, given=shown(value)).text())
    return kind if ratio == 1 else f"{kind}:{ratio}"


def _schema(*more: str) -> WithJsonSchema:
    pattern = PATTERN.replace("^(?:", f"^(?:{'|'.join(more)}|") if more else PATTERN
    words = "A design of a network between systems; of a tree also with the ports down per port up of a leaf."
    return WithJsonSchema(
        {"type": "string", "description": words, "pattern": pattern, "examples": [*FABRIC_DESIGNS, "fat-tree:2"]}
    )


FabricName = Annotated[str, BeforeValidator(fabric_name), _schema()]
AnyFabric = Annotated[
    str, BeforeValidator(lambda value: value if value == PROVIDER else fabric_name(value)), _schema(PROVIDER)
]
