"""Sentences that explain a plan: why these sites, systems, lines and hours."""
