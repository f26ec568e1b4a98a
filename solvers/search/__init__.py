"""Searches for plans: whole replicas from divisible ones, fewer parts, cleared and yielding jobs, small changes solved again."""
