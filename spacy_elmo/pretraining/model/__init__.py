"""The biLM with its softmax and words, and the folders that hold them."""
