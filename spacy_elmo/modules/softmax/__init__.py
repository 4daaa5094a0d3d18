"""The output layers of a biLM that predict words, and their losses: full, sampled and adaptive softmax."""
