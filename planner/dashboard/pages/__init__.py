"""The pages of the dashboard, one file each; every one draws what the modules without Streamlit prepare."""
