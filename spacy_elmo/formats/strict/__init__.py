"""Strict readers: the usual ones of msgpack, .npy and JSON parse too much, or use memory before they check."""
