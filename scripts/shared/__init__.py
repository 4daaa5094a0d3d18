"""What several scripts need: how a script becomes a command, their messages, and writing corpora."""
