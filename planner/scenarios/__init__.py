"""Evaluate a plan in sampled scenarios."""
