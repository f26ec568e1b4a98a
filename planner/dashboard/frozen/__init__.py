"""Plans that are shown as they were stored: by a folder, by the examples, and by links that visitors made. Nothing here solves."""
