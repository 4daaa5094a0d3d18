"""Training of a biLM on one's own text.

Rooms, each of which may call those before it: text/ (from files to batches of numbers), model/ (the biLM with its
softmax and words, and their files), settings/ (what a run may be told), training/ (one update), run/ (from the first
update to the last). scoring.py, the one home of perplexities, calls text/ and model/. Commands call run/, scoring.py
and settings/, and for texts and files text/ and model/.
"""
