"""Queues, and distributions described by three cumulants."""
