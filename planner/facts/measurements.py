"""Compare measurements with the roofline of their own chips, with Little's law, and with their predictions.

Figures are plain numbers in SI; `place` is that of the row, such as "runs.csv line 2", and the path of a fact adds the column.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.facts import Fact
from planner.messages import Message

FAR = 20.0  # times between a prediction and a measurement, beyond which a unit or a load is more likely wrong than the model
ROUNDED = 1.05  # by which figures that are printed rounded may break an identity
APART = (
    2.0  # by which an identity of means may be broken: by lengths that scatter, and by the start and the end of a run
)
MILLI = 1e-3
LONGEST_CONTEXT = 1e9  # tokens; the catalog takes no longer context (catalog/plausibility.py)
LITTLE = "Little's law: requests in flight = requests per second x time of a request"


@dataclass(frozen=True, slots=True)
class Chips:
    """The chips of a run: what they are called, how many, and the most that one of them does; 0 where nothing is published."""

    name: str
    count: float
    bytes_per_s: float
    flop_per_s: float
    bandwidth_source: str
    peak_source: str

    @property
    def words(self) -> str:
        """Return count and name."""
        return f"{self.count:g} x {self.name}"


def time_below_roofline(place: str, column: str, seconds: float, weight_bytes: float, chips: Chips) -> Fact | None:
    """Refuse a time in which the chips cannot read the weights that one token uses: t >= bytes / (chips x bandwidth) [s].

    Source: Williams et al., Roofline, CACM 52 (2009), with the bandwidth of the catalog.
    """
    least_s = weight_bytes / (chips.count * chips.bytes_per_s) if chips.bytes_per_s else 0.0
    if seconds >= least_s:
        return None
    code = "measured.time_in_seconds" if seconds / MILLI >= least_s else "measured.time_below_roofline"
    message = Message.of(
        code, measured=seconds / MILLI, least=least_s / MILLI, chips=chips.words, weights=weight_bytes / 1e9,
        rate=chips.bytes_per_s / 1e12, in_seconds=seconds / MILLI / MILLI,
    )  # fmt: skip
    return Fact(f"{place}, {column}", message, chips.bandwidth_source, refuses=True)


def rate_above_roofline(
    place: str, column: str, tokens_per_s: float, flop_per_token: float, chips: Chips
) -> Fact | None:
    """Refuse a rate that takes more arithmetic than the chips do: tokens/s x FLOP/token <= chips x peak.

    Source: Williams et al., Roofline, CACM 52 (2009), with the highest dense peak that the catalog has of the chip.
    """
    most = chips.count * chips.flop_per_s / flop_per_token if chips.flop_per_s else float("inf")
    if tokens_per_s <= most:
        return None
    message = Message.of(
        "measured.rate_above_roofline", measured=tokens_per_s, most=most, chips=chips.words, work=flop_per_token / 1e9,
        rate=chips.flop_per_s / 1e12,
    )  # fmt: skip
    return Fact(f"{place}, {column}", message, chips.peak_source, refuses=True)


def work_above_peak(place: str, flop_per_s: float, chips: Chips) -> Fact | None:
    """Refuse arithmetic per chip above its peak, stated as TFLOP/s or as a share of the peak."""
    if not chips.flop_per_s or flop_per_s <= chips.flop_per_s:
        return None
    message = Message.of(
        "measured.work_above_peak", measured=flop_per_s / 1e12, most=chips.flop_per_s / 1e12, chip=chips.name
    )
    return Fact(f"{place}, model_tflops_per_chip", message, chips.peak_source, refuses=True)


def more_in_flight(place: str, in_flight: float, most: float, column: str, exact: bool) -> Fact | None:
    """Compare what was in flight by Little's law with a count that bounds it; `exact`: from the mean time and rate of the requests.

    Exact figures of one run cannot break the bound; those put together from tokens break it where lengths scatter, and are named.
    """
    if not most or in_flight <= most * (ROUNDED if exact else APART):
        return None
    message = Message.of("measured.more_in_flight", in_flight=in_flight, most=most)
    return Fact(f"{place}, {column}", message, LITTLE, refuses=exact)


def idle_clients(place: str, in_flight: float, clients: float) -> Fact | None:
    """Name a closed loop whose clients had far fewer requests in flight than there are clients: the load was a rate, or a figure is wrong."""
    if not in_flight or in_flight * APART >= clients:
        return None
    return Fact(
        f"{place}, concurrency", Message.of("measured.idle_clients", in_flight=in_flight, clients=clients), LITTLE
    )


def more_than_arrive(place: str, completed_per_s: float, arrivals_per_s: float) -> Fact | None:
    """Name a run that completed far more requests per second than arrived."""
    if completed_per_s <= arrivals_per_s * APART:
        return None
    message = Message.of("measured.more_than_arrive", completed=completed_per_s, arrivals=arrivals_per_s)
    return Fact(f"{place}, request_rate_per_s", message, "no more requests end than arrive")


def times_disagree(place: str, request_s: float, first_s: float, token_s: float, output_tokens: float) -> Fact | None:
    """Name a time of requests that is far from TTFT + (output tokens - 1) TPOT."""
    parts_s = first_s + (output_tokens - 1.0) * token_s
    if parts_s / APART <= request_s <= parts_s * APART:
        return None
    message = Message.of("measured.times_disagree", request=request_s / MILLI, parts=parts_s / MILLI)
    return Fact(f"{place}, e2e_ms", message, "time of a request = TTFT + (output tokens - 1) x TPOT")


def beyond_any_context(place: str, tokens: float) -> Fact | None:
    """Refuse lengths of a request beyond the context of any architecture."""
    if tokens <= LONGEST_CONTEXT:
        return None
    message = Message.of("measured.beyond_any_context", tokens=round(tokens), most=round(LONGEST_CONTEXT))
    return Fact(f"{place}, isl", message, refuses=True)


def not_whole(place: str, column: str, count: float) -> Fact | None:
    """Refuse a count of chips or ranks that is no whole number."""
    if count == int(count):
        return None
    return Fact(f"{place}, {column}", Message.of("measured.not_whole", count=count), refuses=True)


def far_from_predicted(place: str, metric: str, measured: float, predicted: float, unit: str) -> Fact | None:
    """Name a measurement that is more than `FAR` times above or below its prediction."""
    if predicted / FAR <= measured <= predicted * FAR:
        return None
    times = max(measured / predicted, predicted / measured)
    message = Message.of("measured.far_from_predicted", measured=measured, predicted=predicted, times=times, unit=unit)
    return Fact(f"{place}, {metric}", message, "errors on published runs: benchmarks/accuracy.md")
