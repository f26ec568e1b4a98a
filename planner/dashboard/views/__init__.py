"""The pages of the dashboard, one file each (a folder `pages` beside the script is what Streamlit takes for pages of its own); every one draws what the modules without Streamlit prepare."""
