"""What a biLM predicts words with: full, sampled and adaptive softmax."""
