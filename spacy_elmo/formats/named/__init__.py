"""The names that stand for biLMs, and their folders: of published biLMs, and of those in packages."""
