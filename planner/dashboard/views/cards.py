"""Draw the main figures of a plan as cards, with their change against another."""

from __future__ import annotations

import streamlit as st

from planner.dashboard import headline
from planner.dashboard.figures import number
from planner.plan import Plan
from planner.report.locale import Words
from planner.report.words import MOST_SHARE, share_words

CARD_PX = 190


def draw_cards(base: Plan, plan: Plan, t: Words) -> None:
    """Draw the main figures of a plan with their change against the base."""
    with st.container(horizontal=True):
        for card in cards(base, plan, t):
            width = CARD_PX + 9 * max(0, len(card.label) - 20)  # room for its label
            st.metric(
                card.label, card.value, card.delta, delta_color="inverse", help=card.help, border=True, width=width
            )


class Card:
    """A figure with its change."""

    def __init__(self, label: str, value: str, delta: str | None, help: str):
        self.label, self.value, self.delta, self.help = label, value, delta, help


def cards(base: Plan, plan: Plan, t: Words) -> list[Card]:
    """Write the main figures of a plan with their change against the base."""
    metrics = headline.plan_metrics(plan, t)[:4]
    keys = ("cost", "chips", "peak_power_w", "carbon_kg")
    pairs = [(metric, base.total(key), plan.total(key)) for metric, key in zip(metrics, keys)]
    before = {w["name"]: w["cost_per_million_tokens"] for w in base.document["workloads"]}
    after = {w["name"]: w["cost_per_million_tokens"] for w in plan.document["workloads"]}
    prices = [metric for metric in headline.workload_metrics(plan, t) if metric.label != t("metric.sure")]
    names = [name for name, price in after.items() if price is not None]
    pairs += [(metric, before.get(name), after[name]) for metric, name in zip(prices, names)]
    return [Card(metric.label, metric.value, share_of_change(old, new, t), metric.help) for metric, old, new in pairs]


def share_of_change(old: float | None, new: float | None, t: Words) -> str | None:
    """Write a change in percent, above 200 % as a factor of what was there; None where nothing changes, or nothing was there before."""
    if not old or new is None:
        return None
    change = 100 * (new / old - 1)
    if change > 100 * MOST_SHARE:
        return f"+ {t.phrase(share_words(new / old - 1))}"
    return None if abs(change) < 0.005 else f"{'+' if change > 0 else ''}{number(float(f'{change:.3g}'))} %"
