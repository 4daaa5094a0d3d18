"""Messages on the cache of a frozen biLM's layers."""


class CacheMessages:
    """Message templates."""

    CACHE_BYTES = "max_bytes is {got}. Expected a whole number of bytes, 0 or more; 0 keeps nothing in memory."
    CACHE_NOT_REGULAR = (
        "{path}: a folder or a special file. Set cache_file to a file, which is made where it is missing."
    )
    CACHE_FOLDER = "{path}: can't be made, because the folder {folder} does not exist. Make it, or change cache_file."
    CACHE_CREATE = "{path}: can't be made ({reason}). Set cache_file to a place that can be written to and has room."
    CACHE_KIND = (
        "{path}: not a file of cached layers ({reason}). Set cache_file to another file, or delete this one if nobody "
        "needs it."
    )
    CACHE_NO_SQLITE = "no SQLite database"
    CACHE_OTHER_SQLITE = "an SQLite database with the application_id {got}, not {expected}"
    CACHE_VERSION = (
        "{path}: cached layers in version {got} of their format. Expected version {expected}: delete the file, and it "
        "is made anew, or set cache_file to another one."
    )
    CACHE_READ = (
        "{path}: the cached layers can't be opened or read ({reason}). Where another run holds the file, wait for it; "
        "where the folder can't be written to, set cache_file to another place; only where the file is damaged, delete "
        "it."
    )
    CACHE_FULL = (
        "the cache of the biLM's layers has reached cache_mb = {got}: what does not fit is computed again each time. "
        "Set cache_mb higher, or set cache_file, which keeps all. This is said once."
    )
    CACHE_WRITE = (
        "{path}: no more layers are written there ({reason}). Training goes on without; make room, or set cache_file "
        "to a file that can be written to. This is said once."
    )
