"""Plans that are adapted later: what to sign today, what to keep open, and what knowing more is worth."""
