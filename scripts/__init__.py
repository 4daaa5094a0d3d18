"""What the project runs beside the package, from its folder: `python -m scripts.runs.train_runs`."""
