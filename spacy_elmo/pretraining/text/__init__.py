"""The text of a run: from files to batches of ids. Called by the rest of pretraining and by scoring."""
