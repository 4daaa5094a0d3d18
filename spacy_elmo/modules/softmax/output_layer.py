"""The type of a biLM's output layer."""

from .adaptive import AdaptiveSoftmax
from .full import Softmax

# Both have n_words, projection_dim, reset_parameters(log_probabilities, generator) and loss(x, targets). The sampled
# softmax is a training loss of Softmax, not a class of its own.
OutputLayer = Softmax | AdaptiveSoftmax
