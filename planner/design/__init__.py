"""Questions below a plan, on one case each: what a workload asks of chips, which architecture, which tiers of KV cache, which devices."""
