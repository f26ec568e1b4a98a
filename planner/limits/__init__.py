"""Limits of a spec: each in words, with the edits that relax it."""
