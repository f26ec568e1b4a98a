"""Resolve the software between workloads and chips."""
