"""Runs the compiled loops with gcc's sanitizers, which end a process at an access outside an array."""
