"""One update of the weights: gradients, optimizers, the learning rate, and the processes that share the work.

This folder calls text/, model/ and settings/. run/ and the commands call it.
"""
