"""Reads damaged and hostile files, each in a child process with limits on time and memory."""
