"""What is in an HDF5 file of this package: which kind it is, and the facts that `elmo info` prints.

`files.py` looks into a file itself. `untrusted.py` has it done in a process of its own, which runs `tasks.py`.
`vector_parts.py` reads some embedded sentences there. May be imported by cli and pretraining.
"""
