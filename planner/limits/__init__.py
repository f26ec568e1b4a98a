"""Limits of a spec: what each says in words, and how it can give way."""
