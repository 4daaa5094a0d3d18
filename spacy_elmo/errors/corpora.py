"""Messages on texts for training, prepared corpora and vocabularies."""


class CorpusMessages:
    """Message templates."""

    # Sources
    SOURCE_MISSING = "{source}: no such file or folder, and no pattern that matches a file. Expected {expected}."
    SOURCE_EMPTY = "{source}: a folder without files that can be read. Expected {expected}."
    SOURCE_SPECIAL = "{source}: neither a file nor a folder. Expected {expected}."
    SOURCE_PATTERN = "{source}: not a pattern of file names ({reason}). Expected {expected}."
    SOURCE_DAMAGED = "{path}: damaged, cut short or unreadable ({reason}). Get the file again, or leave it out."
    SOURCE_UNPACKED = (
        "{path}: unpacks to more than {limit:,} bytes. Text does not pack that well: the file is damaged, or made to "
        "take time and memory. If it is a text, unpack it and give the unpacked file: plain files have no limit."
    )
    SOURCE_DOCS = (
        "{path}: its docs unpack to more than {limit:,} bytes. Docs do not pack that well: the file is damaged, or "
        "made to take memory. If they are real, write them into several files."
    )
    SOURCE_ZSTD = "{path}: packed with zstd, but zstandard is missing. Get it with pip install zstandard."
    SOURCE_HOLDS_OUTPUT = (
        "{output}: the output is inside {source}, which is the input. Expected a place outside: give another path. "
        "Otherwise the output would be read as text the next time."
    )
    SOURCE_NO_SENTENCES = (
        "{source}: no sentence that can be read; {lines:,} lines, {blank:,} of them blank, {bad:,} bad{examples}. "
        "Expected {expected}."
    )
    SOURCE_LANGUAGE = (
        "the language is {got}, which can't be used ({reason}). Expected the code of a language that spaCy knows, "
        "like en, or none if the words are separated by blanks already."
    )

    # Prepared corpora
    PREPARED_MISSING = "{folder}: no prepared corpus ({reason}). Expected the folder that preparing a text has made."
    PREPARED_DAMAGED = "{folder}: the prepared corpus is damaged ({reason}). Delete the folder and prepare it again."
    PREPARED_VERSION = (
        "{folder}: a prepared corpus in version {got} of its format. Expected version {expected}: prepare it again."
    )
    PREPARED_FOREIGN = (
        "{folder}: holds {got}, which is not part of a prepared corpus. Expected a new folder, or that of a prepared "
        "corpus, which is replaced: give another one."
    )
    PREPARED_OTHER = "{folder}: meanwhile another corpus was prepared there. Start again with the new one."
    PREPARED_PART = "the part from sentence {start} to {stop} was asked for. Expected a part of {n} sentences."
    HELDOUT_SHARE = "the held-out share is {got}. Expected a number above 0 and below 1."
    HELDOUT_FEW = "{folder}: {got} sentence. Expected at least two, to hold one out: give more text."

    # Vocabularies
    VOCABULARY_SIZE = "the vocabulary's size is {got}. Expected a whole number, {expected} or more."
    VOCABULARY_MIN_COUNT = "the minimum count is {got}. Expected a whole number, 1 or more."
    VOCABULARY_EMPTY = "no word of the text occurs {min_count:,} times. Lower the minimum count, or give more text."
    VOCABULARY_LINE = "{source}: line {line}: {problem}. Expected one word a line, in UTF-8, each word once."
    VOCABULARY_SPECIAL = "{source}: line {line} is {got}. Expected {expected}: {special} come first, in this order."
    VOCABULARY_COUNTS = (
        "{source}: not the counts of these words ({reason}). Expected {n:,} numbers of int64, none below 0: build the "
        "vocabulary again, or delete the counts."
    )

    # An index of the words of a corpus
    INDEX_MISSING = "{folder}: no index ({reason}). Expected the folder that elmo neighbours --index has written."
    INDEX_DAMAGED = "{folder}: the index is damaged ({reason}). Delete the folder, and make the index again."
    INDEX_VERSION = "{folder}: an index in version {got} of its format. Expected version {expected}: make it again."
    INDEX_EXISTS = "{folder}: has an index. Give another folder, or replace it (replace=True, or --force)."
    INDEX_FOREIGN = (
        "{folder}: holds {got}, and no index. Expected a new or an empty folder, or that of an index: give another one."
    )
    INDEX_BILM = (
        "{folder}: another biLM made this index. Its name was {model} and its fingerprint is {expected}, that of the "
        "biLM here is {got}. Give the biLM that made it (--model), or make an index with this one in another folder."
    )
    INDEX_OTHER = (
        "{folder}: this index is not of {source} as it is now, with these settings: it was made of {made}. Add "
        "--force to make it again, give another folder, or search it as it is: give {folder} in place of {source}."
    )
    INDEX_SETTINGS = "{option} was given, but {folder} is an index, which has its own. Leave out {option}."
    INDEX_LAYER = "the layer is {got}. Expected a number from 0 to {last}, or {mix!r}, the mean of all layers."
    INDEX_STATEFUL = (
        "the embedder is stateful, so that vectors would depend on the sentences before. Expected stateful=False."
    )
    INDEX_LAYER_OPTION = "--layer is {got}. Expected the number of a layer, or {mix}."
    QUERY_WORD = (
        "the word {word} does not occur in the query, which was split {how}, as the corpus is: {words}. Expected one "
        "of these words, exactly as it is written there."
    )
    QUERY_OCCURRENCE = "the occurrence is {got}, but the query has {word} {n} times. Expected a number from 1 to {n}."
