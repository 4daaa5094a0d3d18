"""Folders that only one process at a time may write, and what killed processes left in them."""
