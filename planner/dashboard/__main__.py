"""The script that `tokenwatt dashboard` hands to Streamlit."""

from planner.dashboard import main

main()
