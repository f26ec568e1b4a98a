"""Compare demand, latency limits, drafts and training runs with the largest, fastest and longest that are known."""

from __future__ import annotations

from catalog.units import DAY_S, HOUR_S, show
from planner.facts import Fact
from planner.facts.ranges import Known
from planner.messages import Message

NATION = Known(
    0.0,
    140e12 / DAY_S,
    "all of China, March 2026: 140T tokens a day (Why Massive GPU Farms Still Fail to Deliver Enterprise-Ready AI)",
)
NATIONS = 10.0  # as many as would be the world, and more
FASTEST_S = 1 / 3000
"""Of a token to one user: 3,000 tokens/s of gpt-oss-120B on Cerebras (Artificial Analysis, August 2025) [s]."""
READING_S = 60 / 238 / 1.3
"""Of a token to a reader: 238 words a minute (Brysbaert, 2019) of 1.3 tokens [s]."""
READERS = 10.0  # times slower than reading, at which a limit limits nothing
TEXT = Known(0.0, 1e15, "all public text of people, 100T to 1,000T tokens (Villalobos et al., arXiv:2211.04325)")
OPERATIONS = Known(0.0, 5e26 * 5**2, "largest run of 2025, 5e26 FLOP, growing 5-fold a year for two years (Epoch AI)")
BATCH = Known(0.0, 15_360 * 4096, "largest batch of a published run, 62.9M tokens (DeepSeek-V3, arXiv:2412.19437)")
PEOPLE, PEOPLE_SOURCE = 8.3e9, "United Nations, World Population Prospects 2024, for 2026"
ACCEPTANCE = 0.9  # acceptance of a drafted token, the best published: 85 to 90 % (DeepSeek-V3, arXiv:2412.19437)


def beyond_the_world(path: str, tokens_per_s: float) -> Fact | None:
    """Name a demand, prompts and answers together at its peak in time, of more than ten times the tokens of China."""
    if tokens_per_s <= NATIONS * NATION.most:
        return None
    times = tokens_per_s / NATION.most
    return Fact(
        path, Message.of("load.beyond_the_world", given=show(tokens_per_s * DAY_S, "token"), times=times), NATION.source
    )


def rate_of_users(path: str, at_once: float, per_user_s: float, mean_per_s: float) -> Fact:
    """Echo users as a rate of requests: of the busiest hour, users at once times the rate of each, and on average over the day."""
    message = Message.of(
        "users.rate", at_once=at_once, per_hour=per_user_s * HOUR_S, peak=at_once * per_user_s, mean=mean_per_s
    )
    return Fact(path, message)


def more_than_people(path: str, users: float) -> Fact | None:
    """Name a number of users above that of people."""
    if users <= PEOPLE:
        return None
    return Fact(path, Message.of("users.more_than_people", given=users, people=PEOPLE), PEOPLE_SOURCE)


def no_limit(path: str, tpot_s: float) -> Fact | None:
    """Name a limit on the time per token at which tokens come ten times slower than people read: it limits nothing."""
    if tpot_s <= READERS * READING_S:
        return None
    return Fact(
        path,
        Message.of("load.no_limit", given=tpot_s, reading=READING_S),
        "reading speed of 238 words a minute (Brysbaert, 2019), 1.3 tokens a word",
    )


def too_fast(path: str, tpot_s: float) -> Fact | None:
    """Name a limit on the time per token below half that of the fastest published service."""
    if tpot_s >= FASTEST_S / 2:
        return None
    return Fact(
        path,
        Message.of("load.too_fast", given=show(1 / tpot_s, "token/s"), fastest=show(1 / FASTEST_S, "token/s")),
        "gpt-oss-120B on Cerebras, 3,000 tokens/s (Artificial Analysis, August 2025)",
    )


def too_certain(path: str, acceptance: float) -> Fact | None:
    """Name an acceptance of drafts that misses less than half as often as the best published: 1 - a < (1 - 0.9)/2."""
    if 1.0 - acceptance >= (1.0 - ACCEPTANCE) / 2:
        return None
    return Fact(
        path,
        Message.of("load.too_certain", given=acceptance, best=ACCEPTANCE),
        "85 to 90 % of drafted tokens (DeepSeek-V3, arXiv:2412.19437)",
    )


def operations(parameters: float, tokens: float) -> float:
    """Count the operations of a run: 6 for each parameter that a token uses and each token (Kaplan et al., arXiv:2001.08361) [FLOP]."""
    return 6.0 * parameters * tokens
