"""Take features out of a case, each alone and all together: `estimate --without`.

A claim such as "KV tiers give 10 times the throughput" is settled so for the user's own workload.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner.errors import Issue, SpecError, close_matches
from planner.messages import Message
from planner.spec.serving import HBM
from planner.studies.variants.variant import Document, Variant


def without(document: Document, names: Sequence[str]) -> list[Variant]:
    """List the case as stated, without each feature alone, and without all of them. Raises SpecError for features that it does not state."""
    workload = document.get("workload")
    held = [name for name, out in FEATURES.items() if isinstance(workload, Mapping) and out(_copied(document))]
    told = {"known": ", ".join(held) or Message.of("estimate.no_features").text()}
    problems = []
    for name in names:
        if name not in FEATURES:
            words = Message.of(
                "estimate.unknown_feature", close=close_matches(name, FEATURES), known=", ".join(FEATURES)
            )
            problems.append(Issue("--without", words.text()))
        elif name not in held:
            problems.append(Issue("--without", Message.of("estimate.feature_not_stated", name=name, **told).text()))
    if not names:
        problems.append(Issue("--without", Message.of("estimate.features_expected", **told).text()))
    if problems:
        raise SpecError(problems)
    head, chosen = Message.of("estimate.head_without").text(), list(dict.fromkeys(names))
    groups: list[list[str]] = [[], *([name] for name in chosen), *([chosen] if len(chosen) > 1 else [])]
    variants = []
    for group in groups:
        changed = _copied(document)
        for name in group:
            FEATURES[name](changed)
        variants.append(Variant({head: ", ".join(group) or Message.of("estimate.as_stated").text()}, changed))
    return variants


def _copied(document: Document) -> dict[str, Any]:
    return copy.deepcopy(dict(document))


def _no_tiers(document: dict[str, Any]) -> bool:
    """Keep the cache in the memory of the chips alone, or no cache where none of it lies there."""
    cache = document["workload"].get("cache") or {}
    tiers = cache.get("tiers") or []
    inside = [tier for tier in tiers if tier.get("name") == HBM]
    if len(inside) == len(tiers):
        return False
    if inside and cache.get("hit_rate") is None:
        cache["tiers"] = inside
    else:
        del document["workload"]["cache"]
    return True


def _one_pool(document: dict[str, Any]) -> bool:
    """Run prefill and decode in one pool."""
    stated = document.pop("pools", None) is not None
    stated = stated or document["workload"].get("disaggregation") == "always"
    document["workload"]["disaggregation"] = "never"
    return stated


def _no_persistent_kernels(document: dict[str, Any]) -> bool:
    """Launch kernels one by one, by the default engine."""
    if document["workload"].get("engine") != PERSISTENT_KERNELS:
        return False
    del document["workload"]["engine"]
    return True


def _no_key(key: str) -> Callable[[dict[str, Any]], bool]:
    """Make the removal of a key of the workload."""
    return lambda document: document["workload"].pop(key, None) is not None


PERSISTENT_KERNELS = "persistent kernels"  # a name in the engines of the catalog
FEATURES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "kv_tiers": _no_tiers,
    "prefix_cache": _no_key("cache"),
    "pools": _one_pool,
    "persistent_kernels": _no_persistent_kernels,
    "compiler": _no_key("compiler"),
    "speculation": _no_key("speculation"),
    "routing": _no_key("routing"),
}
"""How each feature is taken out of a case, in place; False where the case does not state it."""
