"""Answer a seller's quote: read it, solve with it, and say below which price to take it, how much of it, and what it displaces."""
