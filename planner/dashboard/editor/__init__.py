"""Tables of a spec that a visitor edits: which cells there are, and what becomes of the spec when they change. No Streamlit here."""
