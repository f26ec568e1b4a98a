"""Check the policy of an adaptive plan: its prices, layouts and dates, and a replay in fresh scenarios by code of the checks' own."""
