"""Read the constants of the models, and the calibration behind their intervals, from the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from catalog.figures import Figure
from catalog.lookup import shipped_catalog
from models.energy.power import PowerConstants
from models.formats import kinds_meant
from models.reinforcement.constants import ReinforcementConstants
from models.serving.constants import ServingConstants
from models.statistics.intervals import TIERS
from models.training.constants import TrainingConstants
from planner.errors import Issue, SpecError, words_of
from planner.messages import Message
from planner.problem.constants import Loading, ModelConstants, Reliability
from planner.problem.engine import Correction
from planner.problem.intervals import LABELS, Calibration, Reach, generation_of, relatives, seen_chips, seen_kinds
from planner.resolve.ledger import Ledger

Constants = TypeVar("Constants", TrainingConstants, ServingConstants, PowerConstants, ReinforcementConstants)


RELIABILITY_REASONS = {
    "interruption_interval_s": Message.of("resolve.interruption_of_run").text(),
    "chip_failure_interval_s": Message.of("resolve.failure_of_chip").text(),
    "recovery_s": Message.of("resolve.restart").text(),
    "repair_s": Message.of("resolve.repair_time").text(),
    "checkpoint_bytes_per_parameter": Message.of("resolve.checkpoint_size").text(),
    "chip_checkpoint_bytes_per_s": Message.of("resolve.checkpoint_bandwidth").text(),
    "spares_availability": Message.of("resolve.full_strength_share").text(),
}


UNSPARED = "unspared_s"  # no assumption: spares are held


ENGINE_START = "engine_start_s"
STORAGE = "checkpoint_storage_bytes_per_s"  # rate of a site, for weights


def model_constants(ledger: Ledger, trains: bool = True, serves: bool = True, learns: bool = False) -> ModelConstants:
    """Read the constants of the models; constants of failures are booked as assumptions where the spec trains anything.

    `serves`: book the start of an engine. `learns`: book the constants of reinforcement learning.
    """
    if trains:
        known = {name: ledger.default(name, f"training.{name}", reason) for name, reason in RELIABILITY_REASONS.items()}
    else:
        known = {name: ledger.catalog.get("defaults", name).value("value") for name in RELIABILITY_REASONS}
    if serves:
        start_s = ledger.default(ENGINE_START, f"serving.{ENGINE_START}", Message.of("resolve.engine_start").text())
    else:
        start_s = ledger.catalog.get("defaults", ENGINE_START).value("value")
    return ModelConstants(
        training=_read(ledger, "training", TrainingConstants),
        serving=_read(ledger, "serving", ServingConstants),
        power=_read(ledger, "power", PowerConstants),
        reinforcement=_learning(ledger, learns),
        reliability=Reliability(
            chip_interruption_s=known["interruption_interval_s"],
            chip_failure_s=known["chip_failure_interval_s"],
            recovery_s=known["recovery_s"],
            repair_s=known["repair_s"],
            checkpoint_bytes_per_parameter=known["checkpoint_bytes_per_parameter"],
            chip_checkpoint_bytes_per_s=known["chip_checkpoint_bytes_per_s"],
            availability=known["spares_availability"],
            unspared_s=ledger.value("defaults", UNSPARED, "value") if trains else 0.0,
        ),
        loading=Loading(
            engine_start_s=start_s, storage_bytes_per_s=ledger.catalog.get("defaults", STORAGE).value("value")
        ),
        measured_training=calibration(ledger, "training"),
        measured_serving=calibration(ledger, "serving"),
    )


def _learning(ledger: Ledger, learns: bool) -> ReinforcementConstants:
    """Read the constants of reinforcement learning, booked only where something learns."""
    if learns:
        return _read(ledger, "reinforcement", ReinforcementConstants)
    names = [name for name in ledger.catalog.names("constants") if name.startswith("reinforcement.")]
    return ReinforcementConstants.from_values(
        {name.partition(".")[2]: ledger.catalog.get("constants", name).value("value") for name in names}
    )


def _read(ledger: Ledger, model: str, kind: type[Constants]) -> Constants:
    """Read the constants of one model. Raises SpecError where figures of the spec or of an overlay contradict each other or the model."""
    prefix = f"{model}."
    names = [name for name in ledger.catalog.names("constants") if name.startswith(prefix)]
    figures = {name: ledger.figure("constants", name, "value") for name in names}
    try:
        return kind.from_values({name.removeprefix(prefix): figure.number for name, figure in figures.items()})
    except ValueError as error:
        shipped = {record.name: record.get("value") for record in shipped_catalog().records("constants")}
        stated = [name for name, figure in figures.items() if figure != shipped.get(name)]
        if not stated:
            raise  # our own data are wrong
        raise SpecError(
            Issue(
                f"{_place(figures[name])}.constants/{name}/value",
                Message.of("resolve.change_or_remove", error=words_of(error)).text(),
            )
            for name in stated
        ) from None


def _place(figure: Figure) -> str:
    """Name the block that states a figure: overrides, or the catalog with its overlays."""
    return "overrides" if figure.source == OVERRIDE else "catalog"


SERVING_KEY, TRAINING_KEY = "engine|chip|precision|metric", "source|chip|precision"
OVERRIDE = ("override",)
"""Source of a figure that the spec's `overrides` state."""
CORRECTED = ("tpot", "ttft", "throughput")


def _anchor_parts(figure: Figure, record: str, key: str, form: str) -> list[str]:
    """Split the name of an own calibration. Raises SpecError for one of another form."""
    parts = key.split("|")
    if len(parts) != form.count("|") + 1 or (form == SERVING_KEY and parts[-1] not in CORRECTED):
        metrics = f", the metric one of {', '.join(CORRECTED)}" if form == SERVING_KEY else ""
        words = Message.of("resolve.constant_name_expected", example=f"{form}{metrics}").text()
        raise SpecError([Issue(f"{_place(figure)}.constants/{record}/{key}", words)])
    return parts


def by_kind(keys: Iterable[str]) -> dict[str, str]:
    """Map environments of own runs, with the kind of weights in third place, to the keys whose figures hold for them.

    A key of a name that several kinds share, such as "fp4", stands for each of them that has no key of its own.

    >>> by_kind(["vllm|B200|fp4|tpot", "vllm|B200|mxfp4|tpot"])
    {'vllm|B200|nvfp4|tpot': 'vllm|B200|fp4|tpot', 'vllm|B200|mxfp4|tpot': 'vllm|B200|mxfp4|tpot'}
    """
    found: dict[str, str] = {}
    for key in keys:
        parts = key.split("|")
        for kind in kinds_meant(parts[2]) if len(parts) > 2 else ():
            own = "|".join((*parts[:2], kind, *parts[3:]))
            found[own] = key if kind == parts[2] else found.get(own, key)
    return found


def own_corrections(ledger: Ledger, engine: str | None) -> tuple[tuple[str, str, Correction], ...]:
    """Read what the user's own serving runs measured over predictions, by chip and kind of weights.

    Runs with the workload's engine count where there are any on that chip, else the mean over the other engines.
    """
    found: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for key, stored in _own_keys(ledger, "serving_anchor", SERVING_KEY).items():
        by, chip, kind, label = key.split("|")
        found.setdefault((chip, kind), {}).setdefault(by, {})[label] = ledger.value(
            "constants", "serving_anchor", stored
        )
    return tuple((chip, kind, _correction(by_engine, engine)) for (chip, kind), by_engine in sorted(found.items()))


def _own_keys(ledger: Ledger, name: str, form: str) -> dict[str, str]:
    """List the keys of own runs by environment (`by_kind`). Raises SpecError for a key of another form."""
    figures = ledger.catalog.get("constants", name).figures
    for key, figure in figures.items():
        _anchor_parts(figure, name, key, form)
    return by_kind(figures)


def _correction(by_engine: Mapping[str, Mapping[str, float]], engine: str | None) -> Correction:
    """Choose the factors of an engine; where the workload states none, of the one measured most, else the mean of all."""
    if engine is None:
        engine = max(by_engine, key=lambda name: (len(by_engine[name]), name))
    if engine in by_engine:
        return Correction(**by_engine[engine], engine=engine)
    labels = {label for factors in by_engine.values() for label in factors}
    means = {
        label: float(np.exp(np.mean([np.log(factors[label]) for factors in by_engine.values() if label in factors])))
        for label in labels
    }
    return Correction(**means, engine=engine)


def calibration(ledger: Ledger, model: str) -> Calibration:
    """Read the calibration of a model ("training" or "serving"), its bands booked in the ledger."""
    catalog, labels = ledger.catalog, LABELS[model]
    bands = {
        (tier, label): (
            ledger.value("constants", f"{model}_interval", f"{tier}_{label}_low"),
            ledger.value("constants", f"{model}_interval", f"{tier}_{label}_high"),
        )
        for tier in TIERS
        for label in labels
    }
    chips = seen_chips(catalog, model)
    own, further = _own_figures(ledger, model, "anchor"), _own_figures(ledger, model, "own_spread")
    for name, figure in catalog.get("constants", f"{model}_seen").figures.items():
        if name.startswith("chip ") and figure.source == OVERRIDE:  # what ships is no figure of the plan's
            ledger.value("constants", f"{model}_seen", name)
    missed = catalog.get("constants", f"{model}_residuals")
    return Calibration(
        bands=bands,
        chips=chips,
        relatives=relatives(catalog, chips),
        kinds=seen_kinds(catalog, model),
        families={chip.name: generation_of(chip) for chip in catalog.records("chips")},
        reach=_reach(ledger, model),
        anchors={key: float(np.exp(np.mean(np.log(factors)))) for key, factors in own.items()},
        spreads={
            key: float(np.sqrt(np.mean(np.square(spreads)) + np.var(np.log(own[key]))))
            for key, spreads in further.items()
            if key in own
        },
        narrowed={
            (chip, label): ledger.value("constants", f"{model}_probe", f"{chip}|{label}")
            for chip, _, label in (key.partition("|") for key in catalog.get("constants", f"{model}_probe").figures)
        },
        load_power=ledger.value("constants", "serving_load", "power") - 1.0 if model == "serving" else 0.0,
        levels=missed.series("levels"),
        residuals={(tier, label): missed.series(f"{tier}_{label}") for tier in TIERS for label in labels},
        rank_correlation=np.reshape(missed.series("rank_correlation"), (len(labels), len(labels)))
        if missed.get("rank_correlation")
        else None,
    )


def _reach(ledger: Ledger, model: str) -> Reach:
    """Read what each family was fitted on, and how intervals grow outside, booked in the ledger."""
    ranges: dict[str, dict[str, tuple[float, float]]] = {}
    record = ledger.catalog.get("constants", f"{model}_range")
    for name in record.figures:
        family, _, feature = name.partition("|")
        least, most = record.series(name)
        ranges.setdefault(family, {})[feature] = least, most
    return Reach(ranges, {label: ledger.value("constants", f"{model}_reach", label) - 1.0 for label in LABELS[model]})


def _own_figures(ledger: Ledger, model: str, what: str) -> dict[tuple[str, str, str], list[float]]:
    """Read a figure of the user's own runs by (chip, kind, label), of each of the engines; an offset of training holds for all labels."""
    name = f"{model}_{what}"
    found: dict[tuple[str, str, str], list[float]] = {}
    form = SERVING_KEY if model == "serving" else TRAINING_KEY
    for key, stored in _own_keys(ledger, name, form).items():
        _, chip, kind, *label = key.split("|")
        for each in label or LABELS[model]:
            found.setdefault((chip, kind, each), []).append(ledger.value("constants", name, stored))
    return found
