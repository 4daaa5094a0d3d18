"""`python -m spacy_elmo.kernels` compiles the loops for this machine."""

from . import build

if __name__ == "__main__":
    print(build())
