"""Plausible ranges of figures: wider than anything known, so that a typing error is reported and not computed with."""

from __future__ import annotations

from dataclasses import dataclass

from catalog import units
from catalog.errors import Wrong


@dataclass(frozen=True, slots=True)
class Range:
    """From `least` to `most` in SI, or 0 unless `positive`; `signed`: the same below 0."""

    least: float
    most: float
    positive: bool = False
    signed: bool = False
    whole: bool = False

    def problem(self, value: float, unit: str) -> str:
        """Describe the fault of a value; empty where nothing is."""
        size = abs(value) if self.signed else value
        if self.whole and value != int(value):
            return Wrong("catalog.expected_whole_number", given=f"{value:g}")
        if self.least <= size <= self.most or (value == 0 and not self.positive):
            return ""
        shown = {"least": self.least, "most": self.most, "given": value}
        return Wrong(
            "catalog.expected_in_range",
            sign="+/- " if self.signed else "",
            zero="" if self.positive else Wrong("catalog.or_zero"),
            **{name: units.show(number, unit) for name, number in shown.items()},
        )


_BY_UNIT = {
    "FLOP/s": Range(1e9, 1e19, positive=True),
    "FLOP": Range(1, 1e40),
    "byte": Range(1, 1e18),
    "byte/s": Range(1e3, 1e18),
    "W": Range(1e-3, 1e10),
    "kg": Range(1e-6, 1e15),
    "kg/J": Range(1e-12, 1e-5),
    "s": Range(1e-9, 1e10),
    "degree": Range(1e-6, 180, signed=True),
    "1": Range(1e-6, 1e16),
    "1/s": Range(1e-9, 1e9),
    "chip": Range(1, 1e6, positive=True, whole=True),
    "system": Range(1, 1e9),
    "token": Range(1, 1e12),
    "token/s": Range(1e-6, 1e15),
    # any currency, so with room for weak ones
    "USD": Range(1e-4, 1e18),
    "USD/s": Range(1e-12, 1e12),
    "USD/J": Range(1e-15, 1e-1),  # not below 0: a plan would burn power for money
    "USD/byte": Range(1e-21, 1),
    "USD/W": Range(1e-6, 1e7),
    "USD/W s": Range(1e-15, 1),
}
_COUNT = Range(1, 1e4, positive=True, whole=True)
_WIDTH = Range(1, 1e7, whole=True)
_BY_FIGURE = {
    **dict.fromkeys(("layers", "heads", "kv_heads"), _COUNT),
    **dict.fromkeys(("hidden", "vocab"), Range(1, 1e7, positive=True, whole=True)),
    **dict.fromkeys(
        ("ffn", "experts", "topk", "routed_groups", "shared_experts", "expert_ffn", "dense_layers", "q_lora_rank", "kv_lora_rank", "qk_nope_dim", "qk_rope_dim",
         "v_head_dim", "window_layers", "linear_layers", "moe_layers", "attention_layers", "mlp_layers", "window_tokens",
         "state_width", "state_inputs", "state_dim", "state_conv", "expert_hidden", "shared_ffn", "window_heads", "window_kv_heads", "window_head_dim",
         "sparse_topk", "index_heads", "index_dim", "csa_layers", "csa_ratio", "hca_layers", "hca_ratio", "o_lora_rank", "o_groups"),
        _WIDTH),
    **dict.fromkeys(("output_gate", "shared_kv", "spread_dense"), Range(0, 1, whole=True)),
    "max_context": Range(1, 1e9, whole=True),
    "head_dim": Range(1, 1e5, positive=True, whole=True),
    "hbm_bytes": Range(1e6, 1e16, positive=True),
    "hbm_bytes_per_s": Range(1e3, 1e18, positive=True),
    "port_bytes_per_s": Range(1e3, 1e18, positive=True),
    "tdp_w": Range(1e-2, 1e8, positive=True),
    "power_w": Range(1e-2, 1e10, positive=True),
    "radix": Range(2, 1e5, positive=True, whole=True),
    "nic_ports": Range(1, 1e6, whole=True),
    **dict.fromkeys(("pue", "pue_air", "pue_liquid", "pue_reported"), Range(1, 5, positive=True)),
    "idle_fraction": Range(1e-6, 1),
    **dict.fromkeys(("compute_share", "memory_share", "bandwidth_share"), Range(1e-3, 1, positive=True)),
}  # fmt: skip
FACTORS = {"constants": 10.0, "defaults": 1000.0}  # by which one may be moved either way


def range_of(figure: str, unit: str) -> Range | None:
    """Look up the range of a figure by its name, else by its SI unit; None where any value will do."""
    if figure in _BY_FIGURE:
        return _BY_FIGURE[figure]
    return _BY_UNIT.get("USD" + unit[3:] if units.is_money(unit) else unit)


def range_around(kind: str, value: float, unit: str) -> Range | None:
    """Compute the range within which a user may move a fitted constant or a default; a share stays one, and 0 takes the range of its unit."""
    if value == 0:
        return range_of("", unit)
    least, most = value / FACTORS[kind], value * FACTORS[kind]
    return Range(least, min(most, 1.0) if kind == "defaults" and unit == "1" and value <= 1 else most, positive=True)
