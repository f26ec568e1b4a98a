"""Blocks of a spec that only some plans need: cost of preemption, quality floor, spread over zones, later decisions."""
