"""A training step: gradients, updates, and the processes that share them."""
