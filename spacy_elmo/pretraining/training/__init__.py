"""One update of the weights: gradients, optimizers, the learning rate, and the processes that share the work.

It may call text/, model/ and settings/; run/ calls it.
"""
