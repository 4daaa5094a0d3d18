"""Messages on files that are read in a process of their own, because they may be made to do harm."""

_GET = "The file is damaged or made to do harm: get it again from a place that you trust, and compare its SHA-256."


class UntrustedMessages:
    """Message templates."""

    UNTRUSTED_CRASH = "{path}: the HDF5 library crashed on this file, in a process of its own ({how}). " + _GET
    UNTRUSTED_TIME = "{path}: the HDF5 library came to no end on this file within {limit}. " + _GET
    UNTRUSTED_MEMORY = "{path}: reading this file takes far more memory than its values need. " + _GET
    UNTRUSTED_OTHER = "{path}: can't be read ({reason}). " + _GET
    UNTRUSTED_START = (
        "{path}: not read, because the process that reads untrusted files could not be started ({reason}). Read the "
        "file without untrusted=True only if you trust it."
    )
    UNTRUSTED_ANSWER = "{path}: the process that reads this file gave an answer that does not fit: {got}. " + _GET
    DOWNLOAD_CONTENT = "{error} The file stays there, because it has the SHA-256 that was asked for: delete it."
    HDF5_BYTES = (
        "{path}: {name} would take {got:,} bytes of memory, but the file has {size:,}. Expected at most {expected:,}. "
        "If you trust the file, set the environment variable {variable} to {got} or more, or store the file without "
        "compression: four times its own size is always allowed."
    )
    HDF5_LIMIT = "{variable} is {got}. Expected a whole number of bytes, such as 4000000000; or unset this variable."
