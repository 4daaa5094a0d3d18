"""Training of a biLM on a text of the user.

Each folder may call those before it: text/ (from files to batches of numbers), model/ (the biLM with its softmax and
vocabulary, and their files), settings/ (the settings of a run), training/ (one update), run/ (from the first update to
the last). scoring.py computes all perplexities, and calls text/ and model/. The commands call run/, scoring.py and
settings/, for texts and files also text/ and model/, and training/ for what torchrun tells a process.
"""
