"""What several commands share. Only commands and views call it."""
