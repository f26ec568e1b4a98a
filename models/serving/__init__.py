"""Closed forms of serving: prefill, decode, KV cache, batching, disaggregation, speculation, and percentiles."""
