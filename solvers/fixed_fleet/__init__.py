"""Dispatch of a fixed fleet."""
