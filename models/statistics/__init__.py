"""Fitting of constants, prediction intervals, and sampling."""
