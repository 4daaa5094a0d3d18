"""Linear probes: how much of a label of tokens a linear classifier reads from the vectors of each layer."""
