"""Training of a biLM on a text of the user.

run.py tells a run from its first update to its last; it is the place to begin to read.
"""
