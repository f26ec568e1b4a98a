"""Estimate what later decisions would make of a plan that decides everything at the start."""
