"""What several of the paper's other tasks need."""
