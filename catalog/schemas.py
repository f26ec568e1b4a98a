"""Which figures (with their SI unit) and which texts a record of each kind may have. No data lives here."""

from __future__ import annotations

from catalog.schema import CONTENTS, MAKER, NOTES, FigureSpec, Schema, TextSpec, one
from catalog.units import HOURS_PER_DAY

_REACHED = ("16bit", "8bit", "attention", "memory", "scaleup")
_FORMATS = ("bf16", "fp16", "fp8", "fp4", "int8", "int4", "fp32", "tf32")

CHIPS = Schema(
    "chips",
    "accelerators",
    {
        **{f"{f}_flop_per_s": one("FLOP/s", f"dense peak rate in {f}") for f in _FORMATS},
        "hbm_bytes": one("byte", "memory on the package or board, as sold"),
        "driver_bytes": one("byte", "memory that the driver reports to programs: what an engine divides"),
        "hbm_bytes_per_s": one("byte/s", "peak bandwidth of that memory"),
        "onchip_bytes": one("byte", "last-level cache or scratch memory"),
        "scaleup_bytes_per_s": one("byte/s", "scale-up link of one chip, one direction"),
        "scaleup_chips": one("chip", "most chips in one scale-up domain"),
        "host_bytes_per_s": one("byte/s", "link of one chip to the memory of its host, one direction"),
        "tdp_w": one("W", "rated power"),
        "idle_fraction": one("1", "idle power as a share of the rated power"),
        "price": one("USD", "purchase price of one chip"),
        "rent_on_demand": one("USD/s", "rent of one chip on demand"),
        "rent_reserved": one("USD/s", "rent of one chip under a commitment"),
        "rent_spot": one("USD/s", "rent of one chip on the spot market"),
        "embodied_carbon_kg": one("kg", "carbon emitted in making it with its share of a whole server"),
        **{f"reached_{part}": one("1", f"{part} beside other chips, by an own probe") for part in _REACHED},
    },
    {
        **NOTES,
        **MAKER,
        "family": TextSpec("architecture generation, which decides the efficiency constants"),
        "block_scaled": TextSpec('formats whose block scales its matrix units apply, such as "mxfp8, mxfp4, nvfp4"'),
        "memory": TextSpec("memory technology"),
        "scaleup": TextSpec("name of the scale-up link"),
        "host_link": TextSpec("link to the host"),
        "export_cn": TextSpec(
            "whether it may be sold to China", ("barred", "licence", "domestic", "allowed", "unknown")
        ),
        "export_note": TextSpec("export status in the words of the source"),
        "export_rule": TextSpec("source of the rule that bars it or asks for a licence"),
        "rent_note": TextSpec("where the rents come from"),
    },
)

SYSTEMS = Schema(
    "systems",
    "servers, racks and pods as they are sold",
    {
        "chips": one("chip", "chips in one unit", required=True),
        "scaleup_bytes_per_s": one("byte/s", "scale-up link of one chip, one direction"),
        "scaleup_chips": one("chip", "chips in one scale-up domain as sold"),
        "nic_bytes_per_s": one("byte/s", "network out of the unit per chip, one direction"),
        "nic_ports": one("1", "network ports of one unit"),
        "host_bytes": one("byte", "memory of the hosts of one unit"),
        "host_crowding": one("1", "how the rate over the links of a host falls with g chips, as (g/2)^-c"),
        "power_w": one("W", "maximum power of one unit"),
        "idle_fraction": one("1", "power of one unit that waits for work, as a share of its maximum"),
        "rack_power_w": one("W", "power of its fullest rack, as sold"),
        "racks": one("1", "racks that one unit takes, below 1 where several share one"),
        "tco": one("USD", "three-year total cost"),
        "budget": one("USD", "budget of the project"),
        "rent": one("USD/s", "rent of the whole"),
        **{f"residual_{n}y": one("1", f"share of the purchase price left at an age of {n} years") for n in range(1, 6)},
        "deploy_s": one("s", "time to deploy"),
        "compute_share": one("1", "of a slice of one chip, such as MIG: its share of the chip's rates"),
        "memory_share": one("1", "of a slice of one chip: its share of the chip's memory"),
        "bandwidth_share": one("1", "of a slice of one chip: its share of the bandwidth of the chip's memory"),
        "sustained_fraction": one("1", "share of the peak rate, or of the time, in use"),
        "latency_s": one("s", "latency inside a rack"),
    },
    {
        **NOTES,
        **MAKER,
        "chip": TextSpec("chip record", refers="chips", required=True),
        "chip_as_named": TextSpec("chip as the source names it"),
        "form": TextSpec("node, rack, supernode, pod, cloud node, cluster …"),
        "cooling": TextSpec("how it is cooled", ("air", "liquid", "air or liquid")),
        "topology": TextSpec("scale-up topology"),
        "measured": TextSpec("measured collective bandwidth, GB/s"),
        "price_note": TextSpec("what the source says of its price"),
    },
)

_FABRIC_FAMILIES = (
    *("infiniband", "ethernet", "provider"),
    *("scale-up", "host", "optical", "adapter", "memory", "package", "wide-area", "service", "price", "measurement"),
)

FABRICS = Schema(
    "fabrics",
    "network technologies between and inside systems",
    {
        "port_bytes_per_s": one("byte/s", "rate of one port, one direction"),
        "radix": one("1", "ports of one switch"),
        "switch_bytes_per_s": one("byte/s", "capacity of one switch, one direction"),
        "switch_price": one("USD", "price of one switch"),
        "switch_power_w": one("W", "power of one switch without optics"),
        "optic_power_w": one("W", "power of the transceiver at one end of one port"),
        "link_price_one_tier": one("USD", "connectors and cables per NIC port, one tier of switches"),
        "link_price_two_tier": one("USD", "connectors and cables per NIC port, two tiers of switches"),
        "link_price_three_tier": one("USD", "connectors and cables per NIC port, three tiers of switches"),
        "copper_link_price": one("USD", "a copper cable with both connectors, within a rack"),
        "rack_systems": one("1", "systems in a rack, between which links may be of copper"),
        "hop_latency_s": one("s", "latency of one switch"),
        "alpha_s": one("s", "start-up time of a message between two chips"),
        "stalled_fraction": one("1", "share of collectives that stall"),
    },
    {
        **NOTES,
        **MAKER,
        "family": TextSpec("kind of the record; networks between systems are of the first three", _FABRIC_FAMILIES),
        "switch": TextSpec("switch that the figures belong to"),
        "port": TextSpec("port rate where one number does not say it"),
        "measured": TextSpec("measured efficiency"),
    },
)

_SHAPE = {
    "layers": "transformer layers",
    "hidden": "hidden width",
    "heads": "query heads",
    "kv_heads": "key/value heads",
    "head_dim": "width of one head",
    "ffn": "inner width of the dense feed-forward block",
    "vocab": "vocabulary",
    "experts": "routed experts of a layer",
    "topk": "routed experts that a token uses",
    "routed_groups": "groups of experts to which one token may go",
    "shared_experts": "experts that every token uses",
    "expert_ffn": "inner width of one expert",
    "dense_layers": "layers without experts in an architecture that has them",
    "spread_dense": "1 where they lie among those with experts, not before them",
    "q_lora_rank": "rank of the compressed query (MLA)",
    "kv_lora_rank": "rank of the compressed keys and values (MLA)",
    "qk_nope_dim": "width of a head without position (MLA)",
    "qk_rope_dim": "width of a head with position (MLA)",
    "v_head_dim": "width of a value head (MLA)",
    "window_layers": "layers with sliding-window attention",
    "linear_layers": "layers with linear attention or a state space",
    "moe_layers": "layers with experts",
    "attention_layers": "layers with full attention in a hybrid",
    "mlp_layers": "layers with a dense block in a hybrid",
    "state_width": "inner width of a state-space or linear-attention block",
    "state_inputs": "further outputs of its input projection: B, C and step, or keys, queries and gates",
    "expert_hidden": "width at which routed experts work, where it is not the hidden width",
    "shared_ffn": "inner width of all shared experts of a layer together",
    "mtp_layers": "layers that predict further tokens in training",
    "state_dim": "elements of state for each inner element of a state-space or linear-attention block",
    "state_conv": "elements of convolution state of a block",
    "output_gate": "1 where the output of full attention is gated by a projection of its own width",
    "shared_kv": "1 where full layers have no value projection: keys serve as values",
    "window_heads": "query heads of layers with a window, where they differ",
    "window_kv_heads": "key/value heads of layers with a window, where they differ",
    "window_head_dim": "width of a head of layers with a window, where it differs",
    "sparse_topk": "entries that a sparse indexer keeps",
    "index_heads": "heads of the sparse indexer",
    "index_dim": "width of an index key",
    "sparse_layers": "layers with sparse attention, where others attend to all (default: all that attend to all)",
    "index_layers": "sparse layers with an indexer of their own; the others use the choice of one before (default: all)",
    "csa_layers": "layers that cache an entry for few tokens and choose among the entries",
    "csa_ratio": "tokens of such an entry",
    "hca_layers": "layers that cache an entry for many tokens and attend to all entries",
    "hca_ratio": "tokens of such an entry",
    "o_lora_rank": "rank of the output projection of attention",
    "o_groups": "groups of heads that the output projection takes apart",
    "encoder_parameters": "parameters outside the language model, such as an image encoder",
    "total_parameters": "parameters, as published",
    "active_parameters": "parameters that one token uses, as published",
}
# Formats of published weights that are narrower than 16 bit; what each costs is in models.formats.
NARROW_FORMATS = ("fp8", "int8", "int4", "mxfp8", "mxfp4", "nvfp4")
WEIGHT_PARTS = ("attention", "dense", "shared", "experts", "router", "head")
_SCORES = {"mmlu": "MMLU", "mmlu_pro": "MMLU-Pro", "gpqa_diamond": "GPQA diamond", "swe_verified": "SWE-bench verified"}

ARCHITECTURES = Schema(
    "architectures",
    "shapes of neural networks",
    {
        **{name: one("byte" if name.endswith("_bytes") else "1", words) for name, words in _SHAPE.items()},
        "window_tokens": one("token", "tokens that a sliding window sees"),
        "max_context": one("token", "longest context"),
        "checkpoint_bytes": one("byte", "size of the weights as published, in the format of `weights`"),
        **{f"{f}_group": one("1", f"elements that share a scale in its weights in {f}") for f in NARROW_FORMATS},
        "training_flop": one("FLOP", "work of its training"),
        **{name: one("1", f"{words} score, as a fraction") for name, words in _SCORES.items()},
    },
    {
        **NOTES,
        "hf_id": TextSpec("its name on the Hugging Face hub, which is an alias too"),
        "family": TextSpec("who publishes it, or the series"),
        "year": TextSpec("year of the release"),
        "type": TextSpec("dense, moe or hybrid", ("dense", "moe", "hybrid")),
        "attention": TextSpec("kind of attention", ("mha", "gqa", "mqa", "mla")),
        "attention_pattern": TextSpec("mix of layers in the words of the source"),
        "gated": TextSpec("three-matrix feed-forward block", ("true", "false")),
        "tied": TextSpec("embedding shared with the output head", ("true", "false")),
        "shape": TextSpec("incomplete where the figures do not add up to the network", ("complete", "incomplete")),
        "licence": TextSpec("licence of the weights"),
        "weights": TextSpec("format in which the weights are published", ("bf16", *NARROW_FORMATS)),
        **{
            f"{f}_wide": TextSpec(
                f"parts that stay in 16 bit in its weights in {f}, with a share of their layers where not all do: {', '.join(WEIGHT_PARTS)}"
            )
            for f in NARROW_FORMATS
        },
        **{
            f"{f}_cache": TextSpec(f"format of the KV cache that its weights in {f} ask for", ("bf16", "fp8"))
            for f in NARROW_FORMATS
        },
        "score_source": TextSpec("where the scores come from; compare within one source only"),
    },
)

_BY_LOCAL_HOUR = "each local hour, by its UTC hour in standard time"
REGIONS = Schema(
    "regions",
    "places for a site",
    {
        "latitude": one("degree", "latitude, north positive"),
        "longitude": one("degree", "longitude, east positive"),
        "electricity_price": one("USD/J", "mean price of electricity"),
        "price_profile": FigureSpec(("USD/J",), f"mean market price of {_BY_LOCAL_HOUR}", values=HOURS_PER_DAY),
        "electricity_delivery": one("USD/J", "delivery, losses and supply on top of the market price"),
        "electricity_levies": one("USD/J", "levies on top of price and delivery"),
        "electricity_industrial": one("USD/J", "what industry or businesses pay on average, all parts included"),
        "carbon_intensity": one("kg/J", "mean carbon intensity of the grid"),
        "carbon_profile": FigureSpec(("kg/J",), f"mean direct carbon of {_BY_LOCAL_HOUR}", values=HOURS_PER_DAY),
        "pue": one("1", "power usage effectiveness of all halls there, in place of that of the climate"),
        "pue_reported": one(
            "1", "power usage effectiveness that an operator reports of halls of its own there; no plan counts it"
        ),
        "construction_cost": one("USD/W", "cost of building a data centre per watt of IT power"),
    },
    {
        **NOTES,
        **{f"electricity_{price}_contents": CONTENTS for price in ("price", "delivery", "industrial")},
        "price_profile_contents": CONTENTS,
        "city": TextSpec("city"),
        "country": TextSpec("country"),
        "hub": TextSpec("kind of hub"),
        "timezone": TextSpec("IANA time zone", required=True),
        "climate": TextSpec("climate zone of ASHRAE Standard 169-2006", refers="climates"),
        "export_zone": TextSpec("group of the US export rules", ("CN", "D4", "none", "US")),
        "export_note": TextSpec("export rule in the words of the source"),
        "residency": TextSpec("zone within which data may be kept"),
        "residency_note": TextSpec("data residency in the words of the source"),
        "tariff": TextSpec("time-of-use tariff", refers="tariffs"),
        "tariff_note": TextSpec("structure of the tariff in the words of the source"),
        "latency_note": TextSpec("latency in the words of the source"),
    },
)

CLIMATES = Schema(
    "climates",
    "climate zones of ASHRAE Standard 169-2006, which say how often the air outside cools a hall",
    {
        "pue_air": one("1", "power usage effectiveness of large halls with systems cooled by air, mean over a year"),
        "pue_liquid": one(
            "1", "power usage effectiveness of large halls with systems cooled by liquid, mean over a year"
        ),
    },
    {**NOTES, "title": TextSpec("temperature and humidity")},
)

TARIFFS = Schema(
    "tariffs",
    "time-of-use tariffs, hours in local time",
    {
        "demand_charge": one("USD/W s", "charge on the month's peak power"),
        "capacity_charge": one("USD/W s", "charge on the connected capacity (per kVA, taken as kW)"),
        "floating_share": one("1", "share of the flat price that its multipliers float"),
    },
    {
        **NOTES,
        "contents": CONTENTS,
        "region": TextSpec("area it holds in"),
        "title": TextSpec("notice or schedule"),
        "currency": TextSpec("currency of its prices"),
        "class": TextSpec("class of customer"),
        "effective": TextSpec("date from which it holds"),
        "status": TextSpec(
            "complete: every hour of the year has a price or multiplier; windows: bands without "
            "prices; partial: some hours or prices are missing",
            ("complete", "windows", "partial"),
        ),
        "bands": TextSpec('rows (months, days, hour from, hour to, band, figure of this record or "")', rows=True),
    },
    families={
        r"multiplier_[a-z_]+": one("1", "price in this season and band as a multiple of the flat price"),
        r"price_[a-z_]+": one("USD/J", "price in this season and band"),
    },
)

OFFERS = Schema(
    "offers",
    "ways to obtain a system",
    {
        "price": FigureSpec(("USD", "USD/s"), "of one system: its purchase, or its rent per second", required=True),
        "supply": one("system", "most systems that can be had"),
        "term": one("s", "least time for which it is rented"),
    },
    {
        **NOTES,
        "system": TextSpec("system record", refers="systems", required=True),
        "how": TextSpec("bought or rented", ("buy", "on_demand", "reserved", "spot"), required=True),
        "region": TextSpec(
            'region it is limited to: a region record, or "provider:region" of a region that is '
            "not one of ours; empty for anywhere",
            refers="regions",
            foreign=True,
        ),
        "provider_region": TextSpec("the provider's own name of the region"),
        "provider": TextSpec("who offers it"),
        "zone": TextSpec("residency zone it is limited to"),
    },
)

WAN = Schema(
    "wan",
    "paths between regions and prices of transport",
    {
        "rtt_s": one("s", "round-trip time"),
        "price_per_byte": one("USD/byte", "price of moving a byte"),
        "line_price_per_byte": one("USD/byte", "price of a byte of capacity on a line that is always paid for"),
        "port_price": one("USD/s", "price of one port or connection"),
        "port_bytes_per_s": one("byte/s", "rate of that port"),
        "availability": one("1", "share of time it is up"),
    },
    {
        **NOTES,
        "ends": TextSpec("the two regions", rows=True),
        "transport": TextSpec("kind of line"),
        "measured_between": TextSpec("cloud regions between which it was measured"),
        "setup": TextSpec("time to set up"),
    },
)

LINES = Schema(
    "lines",
    "kinds of line between two sites",
    {
        "rtt_factor": one("1", "round trip as a multiple of that of the path between its ends"),
        "rtt_added_s": one("s", "added to the round trip, by what encrypts and forwards"),
        "availability": one("1", "share of time it is up"),
        "unit_bytes_per_s": one(
            "byte/s", "capacity of one unit in each direction; without it the line is not bought by capacity"
        ),
        "unit_price": one("USD/s", "rent of one unit, both ends together"),
        "price_per_byte": one("USD/byte", "of a byte that leaves a site"),
        "path_price_share": one("1", "share of the path's own price of a byte that is paid beside it"),
        "setup_s": one("s", "from the order until it carries traffic"),
    },
    {
        **NOTES,
        "security": TextSpec(
            "open to all, encrypted from end to end of the line, or a line of one's own",
            ("public", "encrypted", "private"),
            required=True,
        ),
        "setup": TextSpec("time to set up, as its source says"),
    },
)

POWER_CURVES = Schema(
    "power_curves",
    "measured throughput and power of a chip",
    {
        "x": FigureSpec(("W", "1"), "power limit, or sequences in the batch", values=0),
        "power_w": FigureSpec(("W",), "power of one chip", values=0),
        "throughput": FigureSpec(("1/s", "token/s"), "throughput", values=0),
        "relative_power": FigureSpec(("1",), "power as a share of the largest", values=0),
        "relative_throughput": FigureSpec(("1",), "throughput as a share of the largest", values=0),
    },
    {
        **NOTES,
        "chip": TextSpec("chip as the source names it"),
        "workload": TextSpec("what ran"),
        "axis": TextSpec("what x is"),
    },
)

ANCHORS = Schema(
    "anchors",
    "published rates of whole systems, which predictions are held against",
    {
        "rate": one(
            "token/s",
            "tokens of one chip: of output in decode, of prompts in prefill, of both in training",
            required=True,
        ),
        "chips": one("chip", "chips that ran it"),
        "input_tokens": one("token", "prompt of a request"),
        "output_tokens": one("token", "answer of a request"),
        "tpot_limit_s": one("s", "limit on the time per output token"),
        "draft_tokens": one("token", "tokens drafted in a step"),
        "acceptance": one("1", "chance that a draft is accepted"),
        "imbalance": one("1", "load of the fullest rank of experts over the mean; without it as fitted"),
        "scaleout_bytes_per_s": one("byte/s", "network of one chip beyond its scale-up domain"),
        "year": one("1", "release of the engine [year]"),
    },
    {
        **NOTES,
        "chip": TextSpec("chip record", refers="chips", required=True),
        "engine": TextSpec("engine whose fitted factors hold; without it those of engines without any"),
        "system": TextSpec("system record", refers="systems"),
        "architecture": TextSpec("architecture record", refers="architectures", required=True),
        "phase": TextSpec("what the chips did", ("decode", "prefill", "training"), required=True),
        "precision": TextSpec("format of the weights"),
        "cache": TextSpec("format of the KV cache; bf16 without it"),
        "grade": TextSpec("trust in it, from audited (A) to a claim (D)", ("A", "B", "C", "D"), required=True),
        "cause": TextSpec("why the prediction lies outside its interval, or why there is none"),
    },
)

ENGINES = Schema(
    "engines",
    "serving engines, and compilers whose kernels they run",
    {
        "host": one("1", "time of the host per step and request, over that of its base"),
        "launch": one(
            "1", "launch time of layers, over that of its base: below 1 where kernels are fused or stay resident"
        ),
        "first_token": one("1", "constant part of the time to first token, over that of its base"),
        "compute": one(
            "1", "share of the peak that matrix products reach, over that of its base; on any family of chips"
        ),
        "memory": one(
            "1", "share of the memory bandwidth that is reached, over that of its base; on any family of chips"
        ),
        "host_step_s": one("s", "time of the host per step, in place of the fitted one"),
        "host_request_s": one("s", "time of the host per running request and step, in place of the fitted one"),
        "layer_launch_s": one("s", "launch time of a layer, in place of the fitted one"),
        "memory_share": one(
            "1", "share that it is shipped with: of the memory that the driver reports, or of what weights leave"
        ),
        "reserved_bytes": one("byte", "context, communication buffers and captured graphs on a chip"),
    },
    {
        **NOTES,
        **MAKER,
        "memory_rule": TextSpec(
            "how it divides memory: a share with the working memory of its largest step inside (share) or outside (static), or a share of what weights and that step leave (free)",
            ("share", "static", "free"),
        ),
        "role": TextSpec(
            "engine, or compiler of the kernels that an engine runs", ("engine", "compiler"), required=True
        ),
        "base": TextSpec(
            "engine whose fitted factors hold for it",
            ("tensorrt_llm", "tensorrt_plan", "vllm", "sglang", "local", "openvino", "other"),
        ),
    },
    families={
        r"compute_[a-z0-9_]+": one("1", "the same as compute, on one family of chips"),
        r"memory_[a-z0-9_]+": one("1", "the same as memory, on one family of chips"),
    },
)

COMPONENTS = Schema(
    "components",
    "parts of chips, by supplier",
    {
        "price": one("USD", "price of good ones of `bytes` together"),
        "bytes": one("byte", "memory that the price is for"),
        "good_share": one("1", "yield: share of those made that are good"),
    },
    {**NOTES, **MAKER, "role": TextSpec("what it is part of a chip for", ("memory",), required=True)},
)

DEFAULTS = Schema(
    "defaults", "what is assumed where nothing is stated", text={**NOTES, "contents": CONTENTS}, open=True
)
CONSTANTS = Schema("constants", "fitted constants of the models", text=NOTES, open=True)

SCHEMAS: dict[str, Schema] = {
    s.kind: s
    for s in (
        CHIPS,
        SYSTEMS,
        FABRICS,
        ARCHITECTURES,
        REGIONS,
        CLIMATES,
        TARIFFS,
        OFFERS,
        WAN,
        LINES,
        POWER_CURVES,
        ANCHORS,
        ENGINES,
        COMPONENTS,
        DEFAULTS,
        CONSTANTS,
    )
}
