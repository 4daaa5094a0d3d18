"""The weights of a biLM: how arrays, datasets and parameters correspond, and the official file that holds them."""
