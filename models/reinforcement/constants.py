"""The constants of reinforcement learning: what each means and its unit. Their values are cited figures of the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class ReinforcementConstants:
    """Fitted constants shared by all chips and frameworks; every one must be given."""

    rollout_factor: float  # on the times of prefill and decode against those of an engine that only serves [1]
    update_factor: float  # on the time of an update against that of a training step of as many tokens [1]
    scoring_factor: float  # on the forward passes that score a batch [1]
    sync_bytes_per_s: float  # at which software copies the weights into an engine, links apart [byte/s]
    sync_start_s: float  # each synchronisation [s]
    sync_tensor_s: float  # each tensor of one, beside its bytes [s]
    worker_response_s: float  # a worker of the controller, for each response that it handles [s]
    endless_share: float  # responses that never end by themselves, where a spec does not state them [1]
    interval_low: float  # bounds of 80 % of measured over predicted iterations, held out [1]
    interval_high: float

    @classmethod
    def from_values(cls, values: Mapping[str, float]) -> ReinforcementConstants:
        """Build from plain numbers by name. Raises ValueError naming a figure that is missing, unknown, or not positive and finite.

        Units: as each field states [SI]. Reference: fit on published iterations, see the catalog.

        >>> ReinforcementConstants.from_values({"rollout_factor": 1.0, "sync_start_s": 0.0})
        Traceback (most recent call last):
        ...
        ValueError: reinforcement constants: missing endless_share, interval_high, interval_low, scoring_factor, sync_bytes_per_s, sync_tensor_s, update_factor, worker_response_s; not positive and finite sync_start_s
        """
        known = {field.name for field in fields(cls)}
        groups = {
            "missing": sorted(known - set(values)),
            "unknown": sorted(set(values) - known),
            "not positive and finite": sorted(
                name for name in known & set(values) if not 0.0 < values[name] < float("inf")
            ),
        }
        if any(groups.values()):
            words = (f"{label} {', '.join(names)}" for label, names in groups.items() if names)
            raise ValueError(f"reinforcement constants: {'; '.join(words)}")
        return cls(**{name: float(value) for name, value in values.items()})
