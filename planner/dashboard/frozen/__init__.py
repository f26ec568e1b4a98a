"""Plans that are shown as they were stored: those of a folder, of the examples, and of links that visitors made. Nothing here solves."""
