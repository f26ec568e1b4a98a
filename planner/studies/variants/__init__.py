"""Answer variants of one case side by side: without features that it states, or with other values of its quantities."""
