"""The dashboard for `streamlit run app.py`; everything is in planner/dashboard."""

from planner.dashboard import main

if __name__ == "__main__":  # Streamlit runs this file as the main script
    main()
