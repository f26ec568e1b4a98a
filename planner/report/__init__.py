"""Format a plan for people: tables, Markdown and sentences."""
