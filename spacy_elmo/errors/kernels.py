"""Messages of the compiled loops."""


class KernelMessages:
    """Message templates of arguments that the compiled loops can't be given."""

    KERNEL_ARRAY = (
        "a compiled loop was given {name} as {dtype} {shape}, {dense}, at address {address}. Expected {expected_dtype} "
        "{expected_shape}, contiguous, at a multiple of {alignment} bytes. This is an error of spacy-elmo: "
        "SPACY_ELMO_KERNELS=0 runs torch's operations instead."
    )
