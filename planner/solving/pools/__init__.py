"""Pools of workloads by prompt length: the boundaries, and what the division saves."""
