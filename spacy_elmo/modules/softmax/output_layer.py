"""What a biLM predicts words with."""

from .adaptive import AdaptiveSoftmax
from .full import Softmax

# both have n_words, projection_dim, reset_parameters(log_probabilities, generator) and loss(x, targets)
OutputLayer = Softmax | AdaptiveSoftmax
