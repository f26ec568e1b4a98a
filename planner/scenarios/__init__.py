"""Sampled scenarios and how a plan fares in them."""
