"""What the figures in README.md and docs/ come from.

Run a script from the project's folder, as `python -m benchmarks.tokens_per_second`. Each one prints a table in
Markdown, and `--help` says what it measures. `make bench` runs those of speed and memory.
"""
