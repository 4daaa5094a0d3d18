"""SHA-256 of what the package computes and writes. Run as plain files, also in the environments of earlier versions."""
