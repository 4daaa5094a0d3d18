"""The paper's other tasks: spaCy components on any tok2vec."""
