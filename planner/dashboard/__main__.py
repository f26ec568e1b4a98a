"""Run the page; `flopwatt dashboard` passes this script to Streamlit."""

from planner.dashboard import main

main()
