"""Processes that solve for the dashboard, within what a server allows. No Streamlit here."""
