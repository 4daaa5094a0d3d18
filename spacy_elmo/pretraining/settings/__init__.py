"""The settings of a run: what they may be, and the file that holds them."""
