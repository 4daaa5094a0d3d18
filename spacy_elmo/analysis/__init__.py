"""What the layers of a frozen biLM know: probing/ asks linear classifiers, senses/ the nearest senses of words."""
