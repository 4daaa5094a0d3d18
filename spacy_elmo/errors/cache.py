"""Messages on the cache of a frozen biLM's layers."""


class CacheMessages:
    """Message templates."""

    CACHE_BYTES = "max_bytes is {got}. Expected a whole number of bytes, 0 or more; 0 caches nothing in memory."
    CACHE_NOT_REGULAR = (
        "{path}: a folder or a special file. Set cache_file to the path of a file; it is created if it is missing."
    )
    CACHE_FOLDER = (
        "{path}: can't be created, because the folder {folder} does not exist. Create the folder, or change cache_file."
    )
    CACHE_CREATE = "{path}: can't be created ({reason}). Set cache_file to a place that can be written to and has room."
    CACHE_KIND = (
        "{path}: not a file of cached layers ({reason}). Set cache_file to another file, or delete this one if nobody "
        "needs it."
    )
    CACHE_NO_SQLITE = "no SQLite database"
    CACHE_OTHER_SQLITE = "an SQLite database with the application_id {got}, not {expected}"
    CACHE_SCHEMA = "an SQLite database with {got}, not with the table of cached layers alone"
    CACHE_LARGER = "its rows have more bytes than the file"
    CACHE_VERSION = (
        "{path}: cached layers in version {got} of their format. Expected version {expected}: delete the file, and it "
        "is created again, or set cache_file to another one."
    )
    CACHE_READ = (
        "{path}: the cached layers can't be opened or read ({reason}). If another run uses the file, wait for it. If "
        "the folder can't be written to, set cache_file to another place. Delete the file only if it is damaged."
    )
    CACHE_FULL = (
        "the cache of the biLM's layers has reached cache_mb = {got}: layers that do not fit are computed again each "
        "time. Set cache_mb higher, or set cache_file, which stores all layers. This warning is given once."
    )
    CACHE_WRITE = (
        "{path}: no more layers are written there ({reason}). Training goes on without the file. Make room, or set "
        "cache_file to a file that can be written to. This warning is given once."
    )
