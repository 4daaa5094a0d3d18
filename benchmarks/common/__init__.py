"""What several benchmarks use: command lines, sentences, sizes, and the load of the machine."""
