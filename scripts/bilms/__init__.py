"""What is made of biLMs, compared with them, and measured of those that the project ships."""
