"""Published ranges of six ratios that tell at a glance whether a plan is plausible. Figures as their sources state them, in SI.

Not here: the ratios of a plan (`planner.report.ratios`).
"""

from __future__ import annotations

from catalog.units import DAY_S
from planner.facts.ranges import Known

WEEK_S = 7 * DAY_S
MILLION = 1e6

WORK = Known(
    5.1e12,
    7.6e14,
    "5th and 95th percentile of 1,929 published best rates (MLPerf Inference 4.1 to 6.1, TensorRT-LLM and others); DeepSeek-V3 and R1 lie within: "
    "2.0e13 on CloudMatrix 384 below 15 ms (arXiv:2506.12708) to 5.0e14 on GB200 (SGLang, September 2025), both of decode chips alone",
)
"""Output tokens per second and chip at full load, times the parameters that a token uses [parameter token/s]: rates of models of other sizes compare."""
POWER = Known(
    810.0,
    2650.0,
    "DGX A100, 6.5 kW for 8 chips (NVIDIA, 2020); MI355X with its share of the data centre, 2.65 kW (SemiAnalysis AI Cloud TCO model, 2026)",
)
"""Power of a chip with its share of server, network and cooling, at the meter [W]."""
COST = Known(
    0.04 / MILLION,
    75.0 / MILLION,
    "list prices of output tokens from 0.04 USD/1M (Ministral 3B, tokenpricing.dev, 2026) to 75 USD/1M (benchlm.ai, 2026); DeepSeek's own cost: 0.52 "
    "USD/1M (open-infra-index, day 6, February 2025)",
)
"""List price of an output token, prompts of a usual request included in the cost that it is compared with [USD/token]."""
BUSY = Known(
    0.52,
    0.90,
    "52 % of a shared training cluster (Jeon et al., arXiv:1901.05758); 82 % of the most nodes of a service (DeepSeek, open-infra-index, day 6, February "
    "2025); above 90 % of one run (Llama 3, arXiv:2407.21783)",
)
"""Share of chips at work, averaged over time."""
LOADS = Known(
    0.0,
    2.0,
    "nodes leave a service for training at night and come back by day: two changes (DeepSeek, open-infra-index, day 6, February 2025)",
)
"""Loads of weights per worker and day."""
LEAD = Known(
    8 * WEEK_S,
    52 * WEEK_S,
    "8 to 12 weeks (Dell, United Daily News, April 2024) to 36 to 52 weeks (Omdia, November 2023; Spheron on H100 nodes, 2026)",
)
"""Time from order to delivery of servers with chips [s]."""
