"""Compare what a spec or a case states with known figures: the callers of the rules of `planner.facts`, one file a part of the spec."""
