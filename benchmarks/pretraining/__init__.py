"""Speed of a pretraining step, in one process and in several."""
