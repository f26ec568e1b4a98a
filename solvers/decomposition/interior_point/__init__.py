"""A primal-dual interior-point method for block-structured LPs."""
