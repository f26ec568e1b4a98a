"""Prefixes that requests find computed: caches that drop the least recently used, by tier, or a stated share of hits."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from planner.replay.requests import Requests
from planner.ways_in.trace_rows import BLOCK_TOKENS


@dataclass(frozen=True, slots=True)
class Tiers:
    """Where prefixes lie: how many each tier holds [1], the share of its hits that are loaded [1], and the time of a load [s].

    `hits`: share of requests that find theirs in each tier, as stated or predicted. Of `popular` prefixes it is not used: they are kept and dropped.
    """

    tokens: float  # length of a prefix
    places: tuple[float, ...]
    loaded: tuple[float, ...]
    load_s: tuple[float, ...]
    hits: tuple[float, ...]
    popular: bool


class PrefixStore:
    """Tell what a request finds, in order of arrival: (tokens, time to load them [s])."""

    def __init__(self, tiers: Tiers | None, requests: Requests, seed: int):
        self.tiers, self.requests = tiers, requests
        self.draws = np.random.default_rng(seed).random((len(requests), 2)).tolist() if tiers else []
        self.held: list[OrderedDict[int, None]] = [OrderedDict() for _ in (tiers.places if tiers else ())]
        self.hits = 0
        self.asked = 0

    def find(self, request: int) -> tuple[float, float]:
        """Look a request's prefix up, and keep it from now on."""
        tiers = self.tiers
        if tiers is None:
            return 0.0, 0.0
        self.asked += 1
        if len(self.requests.blocks):
            tokens = self._blocks(request)
            self.hits += tokens > 0
            return tokens, 0.0
        tier = self._tier(request)
        if tier is None or self.draws[request][1] >= tiers.loaded[tier]:
            return 0.0, 0.0
        self.hits += 1
        return tiers.tokens, tiers.load_s[tier]

    def _tier(self, request: int) -> int | None:
        assert self.tiers is not None
        if not self.tiers.popular:
            left = self.draws[request][0]
            for tier, chance in enumerate(self.tiers.hits):
                if left < chance:
                    return tier
                left -= chance
            return None
        prefix = int(self.requests.prefixes[request])
        found = next((tier for tier, held in enumerate(self.held) if prefix in held), None)
        if found is not None:
            del self.held[found][prefix]
        self._keep(prefix)
        return found

    def _keep(self, prefix: int) -> None:
        """Hold a prefix in the first tier; what a tier drops falls to the next."""
        assert self.tiers is not None
        falling: int | None = prefix
        for held, most in zip(self.held, self.tiers.places, strict=True):
            assert falling is not None
            held[falling] = None
            if len(held) <= most:
                return
            falling, _ = held.popitem(last=False)

    def _blocks(self, request: int) -> float:
        """Count the tokens of a prompt's first blocks that the first tier still holds, and hold its blocks."""
        assert self.tiers is not None
        held, most = self.held[0], self.tiers.places[0] * self.tiers.tokens / BLOCK_TOKENS
        blocks = self.requests.blocks[request]
        first = 0
        while first < len(blocks) and blocks[first] in held:
            first += 1
        for block in blocks:
            held[block] = None
            held.move_to_end(block)
        while len(held) > most:
            held.popitem(last=False)
        return float(min(first * BLOCK_TOKENS, int(self.requests.prompts[request])))
