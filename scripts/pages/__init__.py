"""Write pages of docs/ and their plots from the files in results/."""
