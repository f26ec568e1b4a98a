"""Closed forms of a transformer: parameters, FLOPs, KV bytes, and routing among experts."""
