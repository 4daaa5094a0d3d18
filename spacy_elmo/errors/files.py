"""Messages on files, and on what stands in them."""


class FileMessages:
    """Message templates."""

    # Files
    FILE_MISSING = "{path}: no such file. Expected {expected}."
    FILE_NOT_REGULAR = "{path}: a folder or a special file. Expected {expected}."
    FILE_OUTPUT = "{path}: standard output or standard error goes to it. Expected the name of another file."
    FILE_UNREADABLE = "{path}: can't be read ({reason}). Expected {expected}."
    FILE_UNWRITABLE = "{path}: can't be written ({reason})."
    FILE_NO_PATH = "{got} is no path. Expected text or a pathlib.Path: make bytes text with os.fsdecode."
    FILE_NUL = "{path} has a NUL character, which no path can have. Remove the character."
    FILE_ADDRESS = (
        "{path}: an address on the network. Expected a file: this package downloads nothing by itself. Download it "
        "first with python -m spacy elmo download {path} --sha256 HEX, and give the path of the file."
    )
    NOT_DOWNLOADED = (
        "{name}: a published biLM that was not downloaded to {folder}. Get it with python -m spacy elmo download "
        "{name}. If its files are in another folder, give that folder, or set {variable} to the folder that holds the "
        "folder {name}."
    )
    NOT_INSTALLED = (
        "{name}: a biLM in a package of its own, which is not installed. Expected the package {package}: in a clone of "
        "this project's repository, pip install ./packages/{name}."
    )
    PACKAGE_ENTRY = (
        "{name}: the entry point {value} of the group {group} gives no folder ({reason}). Expected a function that "
        "returns the folder of the package's files, or a module in that folder. Install the package again, or "
        "uninstall it."
    )
    BILM_PACKAGE_FILES = (
        "{folder}: {missing} missing. The entry point {value} of the group {group} names this folder for the biLM "
        "{name}. Expected all files of the package: install it again from a copy that has them, or uninstall it. If it "
        "is your own package, name its files in package_data."
    )
    FOLDER_MISSING = "{path}: can't be written, because the folder {folder} does not exist."

    # Options
    OPTIONS_SIZE = "{path}: more than {limit:,} bytes. Expected the options.json of a biLM, which has about 500."
    OPTIONS_JSON = "{path}: not valid JSON ({reason}). Expected the options.json of a biLM."
    OPTIONS_TOO_DEEP = "{path}: nested too deeply. Expected the options.json of a biLM: objects in one object."
    OPTIONS_DUPLICATE = "the key {key} occurs twice in one object"
    OPTIONS_NOT_OBJECT = "{source}: {key} is {got}. Expected an object with the keys {expected}."
    OPTIONS_MISSING = "{source}: the key {key} is missing. Expected {expected}."
    OPTIONS_MANY_LANGS = (
        "{source}: the options of a model of ELMoForManyLangs, with token_embedder and encoder. It is another network, "
        "which this package can't load. Expected a biLM of AllenNLP or bilm-tf, with lstm and char_cnn."
    )
    OPTIONS_WORDS = (
        "{source}: the key char_cnn is missing. With lstm alone, these are the options of a biLM that reads numbers of "
        "words, which this package can't load. Expected one that reads characters: if char_cnn was lost, add it."
    )
    OPTIONS_VALUE = "{source}: {key} is {got}. Expected {expected}."
    OPTIONS_PARAMETERS = (
        "{source}: these sizes make {got:,} parameters. Expected at most {limit:,} (4 GiB of float32); "
        "lower lstm.dim, lstm.projection_dim, lstm.n_layers, char_cnn.filters or char_cnn.n_highway."
    )

    # Characters
    CHARACTERS_MAX = (
        "max_characters is {got}. Expected an integer of at least {limit}: the word's begin, one byte, the word's end."
    )
    CHARACTERS_STRING = "a sentence is the string {got}. Expected a list of words: split it into tokens first."
    CHARACTERS_WORD = "a word is {got}. Expected a string."

    # HDF5 files
    HDF5_OPEN = "{path}: not an HDF5 file, or one cut short ({reason}). Expected {expected}."
    HDF5_LOCKED = (
        "{path}: can't be locked for reading ({reason}). If another program is writing the file, wait until it has "
        "closed it. If the file system has no locks, set the environment variable HDF5_USE_FILE_LOCKING to FALSE."
    )
    HDF5_READ = "{path}: {name} can't be read ({reason}). The file is damaged: get it again."
    HDF5_NAMES = "{path}: its list of datasets can't be read ({reason}). The file is damaged: get it again."
    HDF5_LINK = "{path}: {name} is a link to another place. Expected the data itself, in this file."
    HDF5_KIND = "{path}: {name} is a {got}. Expected a {expected}."
    HDF5_DTYPE = "{path}: the dataset {name} holds {got}. Expected {expected}."
    WEIGHTS_CONVERTED = (
        "{path}: the weights are stored as {got}, and were converted to float32. Store them as float32 to read them "
        "faster."
    )
    HDF5_STORAGE = "{path}: the dataset {name} is {got}. Expected its values to be stored in this file."
    HDF5_UNALLOCATED = (
        "{path}: the dataset {name} stores {got:,} bytes for {expected:,} bytes of values. "
        "The file is incomplete: get it again."
    )
    HDF5_BEYOND = (
        "{path}: the dataset {name} ends at byte {got:,} of a file of {expected:,}. The file is damaged: get it again."
    )
    HDF5_FILTER = "{path}: the dataset {name} is stored with {got}. Expected {expected}."
    HDF5_CHUNKS = "{path}: the dataset {name} is stored in chunks of shape {got}. Expected {expected}."
    HDF5_RATIO = (
        "{path}: the dataset {name} makes {expected:,} bytes of {got:,}. No float32 values compress that well: "
        "the file is damaged or made to fill the memory."
    )
    HDF5_NOT_FINITE = "{path}: the dataset {name} holds {got} values that are NaN or infinite. Expected none."
    HDF5_STRING = "{path}: the dataset {name} holds {got}. Expected one string of variable length."

    # Weights
    WEIGHTS_MISSING = (
        "{path}: missing datasets: {missing}. Expected the weights of a biLM with the sizes of its options; "
        "at its root the file has {found}."
    )
    WEIGHTS_SHAPES = "{path}: the datasets and the options disagree: {problems}."
    WEIGHTS_SHAPE = "{name} has shape {got}, expected {expected}, from {keys}"
    WEIGHTS_BEYOND = "{path}: the file has {name}, but {key} is {got}. Use the options that came with the file."
    WEIGHTS_SOME = (
        "{path}: some of the optional datasets are present ({present}) and some are missing ({missing}). Expected all "
        "or none."
    )
    PARAMETERS = "{source}: the parameters and the options disagree: {problems}."
    PARAMETER_MISSING = "{name} is missing, expected shape {expected}"
    PARAMETER_UNEXPECTED = "{name} is unexpected"
    PARAMETER_SHAPE = "{name} has shape {got}, expected {expected}"
    PARAMETER_DTYPE = "{source}: {name} is {got}. Expected a numpy array of float32."
    PARAMETER_NOT_FINITE = "{source}: {name} holds {got} values that are NaN or infinite. Expected none."
    PARAMETER_PADDING = "{source}: row 0 of {name} is not zero. Expected zeros: the file has no row for padding."

    STEP_BITS = "the number of bits is {got}. Expected a whole number from {least} to {most}."
    ROUNDING_BITS = "the number of mantissa bits is {got}. Expected a whole number from 1 to {most}."

    # Embedded sentences
    VECTORS_EMPTY = (
        "{path}: no dataset 0 and no sentence_to_index at its root. Expected a file of embedded sentences: those in "
        "groups, such as a group for each document, are not read."
    )
    VECTORS_GAP = "{path}: the dataset {name} is missing, though the file has {found}. Expected 0, 1, 2 ..."
    VECTORS_SHAPE = "{source} has shape {got}. Expected (layers, tokens, width) or (tokens, width)."
    VECTORS_DTYPE = "{source} can't be converted to float32 ({reason})."
    VECTORS_NOT_FINITE = "{source} has {got} values that are NaN or too large for float32. Expected none."
    VECTORS_SENTENCE = "the sentence is {got}. Expected a string."
    VECTORS_INDEX = "{path}: sentence_to_index is {got}. Expected one string: JSON of sentence: index."
    VECTORS_INDEX_ENTRY = "{path}: sentence_to_index gives the index {got}. Expected one of 0 to {last}."
    VECTORS_CLOSED = "{path}: the writer is not open. Expected it inside a with statement."
