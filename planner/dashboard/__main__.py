"""The script that `flopwatt dashboard` hands to Streamlit."""

from planner.dashboard import main

main()
