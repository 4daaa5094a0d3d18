"""Messages of `elmo download`."""


class DownloadMessages:
    """Message templates."""

    DOWNLOAD_URL = "{url}: not an address that can be downloaded ({reason}). Expected http://... or https://..."
    DOWNLOAD_URL_SCHEME = "the scheme is {got!r}"
    DOWNLOAD_URL_HOST = "it names no host"
    DOWNLOAD_UNKNOWN = (
        "{got}: neither an address nor the name of a published biLM. Expected http://..., https://..., or one of "
        "{names}."
    )
    DOWNLOAD_UNHASHED = (
        "{url}: its SHA-256 is needed. Give it once with --sha256, as the publisher of the file tells it; only files "
        "of published biLMs that have a name are downloaded without one."
    )
    DOWNLOAD_HASHES = "--sha256 was given {got} times. Expected {expected}."
    DOWNLOAD_NO_BILM = (
        "{error} This came from {urls}, and was deleted. Check the network; if the address no longer has the file, get "
        "it from elsewhere, and put options.json and weights.hdf5 into {folder}."
    )
    DOWNLOAD_THERE = "{error} The files were in {folder} before. Delete them, and run the same command again."
    DOWNLOAD_SHA256 = (
        "--sha256 is {got}. Expected 64 hexadecimal digits: the SHA-256 of the file, as its publisher gives it."
    )
    DOWNLOAD_NAME = (
        "{url}: the last part of its path, {got}, can't be the name of a file. Expected the address of a file, "
        "like https://example.org/weights.hdf5."
    )
    DOWNLOAD_FOLDER = "{path}: can't be used as a folder ({reason}). Give another folder with --to."
    DOWNLOAD_TARGET = "{path}: a folder or a special file has that name. Move it, or give another folder with --to."
    DOWNLOAD_STATUS = "{url}: the server answered {status} {reason}. Expected 200 and the file: check the address."
    DOWNLOAD_REDIRECTS = (
        "{url}: more than {limit} redirections, the last one to {new}. Expected the file: give its final address."
    )
    DOWNLOAD_SCHEME = (
        "{url}: the server redirects to {new}, an address with another scheme. Expected the same scheme. If you trust "
        "that address, give it to the command instead."
    )
    DOWNLOAD_LONG = (
        "{url}: the server announced {expected:,} bytes and sends more. Expected the file: check the address, or "
        "download it from elsewhere."
    )
    DOWNLOAD_ANSWER = (
        "{url}: the server's answer is not HTTP ({reason}). Check the address, or download the file from elsewhere."
    )
    DOWNLOAD_SHORT = "{got:,} of {expected:,} bytes arrived"
    DOWNLOAD_CONNECTION = (
        "{url}: no file arrived ({reason}). Check the address and the connection, then run the same command again. If "
        "this machine has no network, get the files with another one, and give their paths as options_file and "
        "weight_file."
    )
    DOWNLOAD_CUT = (
        "{url}: the connection broke ({reason}). The {got:,} bytes so far are in {part}: run the same command again, "
        "and it goes on from there."
    )
    DOWNLOAD_HASH = (
        "{url}: the SHA-256 of the downloaded file is {got}. Expected {expected}, from --sha256. The file was "
        "deleted, and nothing was written to {path}. Check the address and the hash; if both are right, run the same "
        "command again."
    )
    DOWNLOAD_WRITE = (
        "{path}: can't be written ({reason}). Make room, or give a folder with --to that can be written to. The bytes "
        "so far are in {part}: the same command goes on from there."
    )
    DOWNLOAD_WRITE_ANEW = (
        "{path}: can't be written ({reason}). Make room, or give a folder with --to that can be written to, and run "
        "the command again."
    )
    DOWNLOAD_TWICE = (
        "{part}: in use by another download of the same file. Wait until that one ends, or give another folder with "
        "--to."
    )
    DOWNLOAD_STOPPED_ANEW = (
        "stopped. Without --sha256 nothing is kept of a file that is not complete: run the command again."
    )
    DOWNLOAD_STOPPED = (
        "stopped. The bytes so far are in the folder {folder}: run the same command again, and it goes on from there."
    )
