"""The spec block by block: forms that are made from the schema, a pane of JSON beside them, undo, and the hourly files that a spec names."""
