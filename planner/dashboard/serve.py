"""The server of the dashboard: the pages of plan links in front, and the page of Streamlit behind them."""

from __future__ import annotations

from pathlib import Path

from starlette.middleware import Middleware
from streamlit.starlette import App

from planner.dashboard.frozen.front import Front

app = App(Path(__file__).with_name("__main__.py"), middleware=[Middleware(Front)])
