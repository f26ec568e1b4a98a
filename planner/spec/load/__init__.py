"""Blocks of a spec about what requests are: calls of sessions, media in prompts, tenants and their priorities."""
