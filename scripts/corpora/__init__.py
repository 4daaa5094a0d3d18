"""Make .spacy files from the files of the tasks."""
