"""Show on standard error how far a command has come."""
