"""Blocks of a spec that only some workloads need: cost of preemption, quality floor, spread over zones."""
