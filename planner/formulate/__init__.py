"""Build the data of the joint program from a problem and its operating points."""
