"""Memory that a process occupies while it embeds."""
