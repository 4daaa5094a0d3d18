"""Get the files of the tasks, and check them against their checksums."""
