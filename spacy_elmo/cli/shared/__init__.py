"""What several commands need: the console, paths, texts and pipelines, signals, errors, downloads.

Commands and views may call it; it calls neither.
"""
