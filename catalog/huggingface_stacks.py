"""Networks of a Hugging Face config.json whose layers hold several blocks of a kind, counted as layers of one block each."""

from __future__ import annotations

from catalog.errors import Wrong
from catalog.huggingface_reader import ConfigReader


def shortcut_blocks(reader: ConfigReader) -> bool:
    """Record a network whose layers are two of attention, two dense blocks, and experts beside them; False for any other.

    Source: LongCat-Flash technical report, arXiv:2509.01322, section 2.2 (shortcut-connected experts).
    """
    if reader.config.get("model_type") != "longcat_flash":
        if reader.config.get("zero_expert_num"):
            reader.problem("zero_expert_num", Wrong("catalog.config_free_experts"))
        return False
    logical = reader.number(0, "num_layers")
    if not logical:
        reader.problem("num_layers", Wrong("catalog.config_shortcut_layers"))
        return True
    reader.put(
        "layers", 5 * logical, f"num_layers of the config: {logical} of two attentions, two dense blocks and experts"
    )
    reader.put("attention_layers", 2 * logical, "two for each of num_layers of the config")
    reader.put("dense_layers", 2 * logical, "two for each of num_layers of the config")
    reader.texts["attention_pattern"] = f"{2 * logical} attention, {2 * logical} dense, {logical} experts"
    return True


def idle_experts(reader: ConfigReader, experts: int, topk: int) -> None:
    """Count the experts that a token visits on average, where some return their input and cost nothing:  k E / (E + E_zero).

    Source: LongCat-Flash technical report, arXiv:2509.01322, section 2.1 (zero-computation experts).
    """
    free = reader.number(0, "zero_expert_num")
    if free:
        mean = max(1, round(topk * experts / (experts + free)))
        words = f"{reader.key_of('topk')} of the config: {topk} of {experts} and {free} that cost nothing, {mean} of the former on average"
        reader.put("topk", mean, words)
