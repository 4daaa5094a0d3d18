"""A run: its folder, its loop, its checkpoints and evaluations. The commands call it."""
