"""Configs that publishers print, cut to the keys that bear the shape: read with the published size, or refused for the true reason first.

`outside` are parameters of an encoder that the published total counts: 4 hidden^2 and its two or three matrices for each layer.
"""

import json
from pathlib import Path

import pytest

from catalog import Catalog, CatalogError
from catalog.huggingface import from_config
from models.transformer.architecture import parameter_counts
from models.transformer.attention import kv_bytes_per_token
from planner.facts.networks import TOTAL_WITHIN, active_agrees
from planner.resolve.architectures import shape_of
from planner.resolve.ledger import Ledger

PUBLISHED = {row["name"]: row for row in json.loads((Path(__file__).parent / "published_configs.json").read_text())}
READ = [name for name, row in PUBLISHED.items() if "refused" not in row]
REFUSED = [name for name, row in PUBLISHED.items() if "refused" in row]


def shape(config):
    catalog = Catalog.load(blocks=[{"architectures": [{"name": "mine", "config": config}]}])
    return shape_of(catalog.get("architectures", "mine"), Ledger(catalog))


def problems(config):
    with pytest.raises(CatalogError) as error:
        from_config(config, "mine")
    return error.value.problems


def changed(name, **keys):
    config = json.loads(json.dumps(PUBLISHED[name]["config"]))
    part = config.get("text_config", config)
    part.update(keys)
    return config


def test_sixty_networks_are_held_and_nine_in_ten_are_read():
    assert len(PUBLISHED) >= 60 and len(READ) >= 54
    assert all(row["source"].startswith("https://") for row in PUBLISHED.values())


@pytest.mark.parametrize("name", READ)
def test_a_published_config_gives_the_published_size(name):
    row = PUBLISHED[name]
    counts, outside = parameter_counts(shape(row["config"])), row.get("outside", 0)
    assert counts.total + outside == pytest.approx(row["total"], rel=TOTAL_WITHIN)
    if row["active"]:
        with_table = counts.active + outside + (counts.embedding if counts.head else 0.0)
        assert active_agrees(counts.active - counts.embedding, with_table, row["active"])


@pytest.mark.parametrize("name", REFUSED)
def test_a_network_of_another_kind_is_refused_for_what_it_is(name):
    row = PUBLISHED[name]
    found = problems(row["config"])
    assert row["refused"] in [path.rpartition(".")[2] for path, _ in found]
    assert all("no closed form" in message or "without a closed form" in message for _, message in found)


@pytest.mark.parametrize("name", READ)
def test_an_unknown_model_type_loses_no_matrix(name):
    """The keys say all: a name that nobody knows gives a size no smaller, or a refusal that names a key."""
    config = changed(name, model_type="never_heard_of", hidden_act="never_heard_of")
    config["model_type"] = "never_heard_of"
    try:
        unknown = parameter_counts(shape(config)).total
    except CatalogError as error:
        assert all("." in path for path, _ in error.problems)
        return
    known = shape(PUBLISHED[name]["config"])
    counts = parameter_counts(known)
    # what only the code says: a head of its own, a gate as wide as the output, the shared expert of Llama 4 (0.5 %)
    gates = known.output_gate * (known.full_layers + known.window_layers) * known.hidden * known.heads * known.v_dim
    assert unknown >= 0.99 * (counts.total - counts.head - gates)


@pytest.mark.parametrize(("keys", "at"), [
    ({"extra_head_dim": 64}, "extra_head_dim"), ({"num_global_hidden_size": 64}, "num_global_hidden_size"),
    ({"second_key_value_heads": 4}, "second_key_value_heads"), ({"block_configs": [{"attention": {}}]}, "block_configs"),
    ({"gate_lora_rank": 64}, "gate_lora_rank"), ({"num_odd_loops": 3}, "num_odd_loops"), ({"num_heads_shared_layers": 3}, "num_heads_shared_layers"),
    ({"layer_types": ["full_attention"] * 63 + ["retention"]}, "layer_types"), ({"num_attention_heads_per_layer": [80, 40] * 32}, "num_attention_heads_per_layer"),
])  # fmt: skip
def test_an_unknown_key_that_changes_a_shape_is_refused_by_name(keys, at):
    found = problems(changed("Seed-OSS-36B", **keys))
    assert [path for path, _ in found] == [f"config.{at}"]


@pytest.mark.parametrize("name", READ)
def test_no_refusal_proposes_the_value_of_another_network(name):
    """A config without its layers is asked for them by key, never by a number or the name of a network."""
    config = json.loads(json.dumps(PUBLISHED[name]["config"]))
    part = config.get("text_config", config)
    for key in ("hidden_size", "vocab_size"):
        part.pop(key, None)
    others = {row["name"].lower() for row in PUBLISHED.values()}
    for path, message in problems(config):
        assert not any(other in message.lower() for other in others), message
        assert not any(word.isdigit() for word in message.replace(",", " ").split()), (path, message)


def test_a_query_head_that_is_not_its_parts_is_named():
    ((path, message),) = problems(changed("sarvam-105b", q_head_dim=200))
    assert path == "config.q_head_dim" and "= 192, got 200" in message


def test_kinds_of_heads_and_layers_reach_the_shape():
    laguna = shape(PUBLISHED["Laguna-S-2.1"]["config"])
    assert (laguna.heads, laguna.window_heads, laguna.window_layers, laguna.dense_layers) == (48, 72, 36, 1)
    inkling = shape(PUBLISHED["Inkling"]["config"])
    assert (inkling.window_layers, inkling.window_kv_heads, inkling.dense_layers, inkling.ffn) == (55, 16, 2, 24576)
    grok = shape(PUBLISHED["Grok-2.5"]["config"])
    assert (grok.shared_ffn, grok.expert_ffn, grok.window_layers) == (32768, 16384, 0)
    solar = shape(PUBLISHED["Solar-Open2-250B"]["config"])
    assert (solar.linear_layers, solar.full_layers, solar.output_gate) == (36, 12, 1)
    lfm = shape(PUBLISHED["LFM2.5-1.2B"]["config"])
    assert (lfm.ffn, lfm.linear_layers, lfm.state_conv) == (8192, 10, 3 * 2048)


def test_layers_that_predict_further_tokens_are_cut_from_a_list_of_kinds():
    step = shape(PUBLISHED["Step-3.7-Flash"]["config"])
    assert (step.layers, step.window_layers, step.window_heads) == (45, 33, 96)


def test_experts_that_cost_nothing_are_counted_as_visited_on_average():
    # 12 of 512 and 256: 8 of the former; 28 layers of two attentions, two dense blocks and experts
    longcat = shape(PUBLISHED["LongCat-Flash-Chat"]["config"])
    assert (longcat.topk, longcat.attention_layers, longcat.dense_layers, longcat.moe_layers) == (8, 56, 56, 28)
    # a latent of 512 + 64 elements in 56 layers, 2 bytes each
    assert kv_bytes_per_token(longcat, 2) == 56 * 576 * 2


def test_layers_that_share_the_choice_of_an_indexer_hold_no_index_keys():
    # a key of 128 elements of 8 bit and a scale of 4 bytes; 57 of 60 layers have one, and 3 attend to all
    m3 = shape(PUBLISHED["MiniMax-M3"]["config"])
    assert (m3.sparse_layers, m3.index_layers, m3.sparse_topk) == (57, 57, 2048)
    assert kv_bytes_per_token(m3, 2) == 60 * 2 * 4 * 128 * 2 + 57 * 132
    # 21 of 78 layers have an indexer
    hy4 = shape(PUBLISHED["Hy4-preview"]["config"])
    assert kv_bytes_per_token(hy4, 2) == 78 * 576 * 2 + hy4.index_layers * 132 and hy4.index_layers == 21
