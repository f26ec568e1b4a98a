"""A plan for people: tables, Markdown and sentences."""
