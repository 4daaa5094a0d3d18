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
    SOURCE_CONLLU = (
        "{path}: a table of annotated words. Expected text: convert it to .spacy with python -m spacy convert "
        "{path} . --converter conllu, and give the file that this writes. If it is packed, unpack it first."
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
        "like en, or xx, which splits at blanks and punctuation; or none if the words are separated by blanks already."
    )
    SOURCE_TOKENIZER = (
        "spaCy's tokenizer for the language {got} needs a package that is not installed ({reason}). Install it, or "
        "split the text with a program of your own: with words separated by blanks, no language is needed."
    )

    # Prepared corpora
    PREPARED_MISSING = (
        "{folder}: no prepared corpus ({reason}). Expected the folder that preparing a text has made. A run that has "
        "checkpoints needs a copy of it, or a new start: pretrain --restart."
    )
    PREPARED_DAMAGED = (
        "{folder}: the prepared corpus is damaged ({reason}). Delete the folder and prepare it again. A run that has "
        "checkpoints needs a copy of it, or a new start: pretrain --restart."
    )
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
    VOCABULARY_EMPTY = (
        "no word of the text occurs {min_count:,} times. Lower vocabulary.min_count (vocab: --min-count), or give more "
        "text."
    )
    VOCABULARY_LINE = "{source}: line {line}: {problem}. Expected one word a line, in UTF-8, each word once."
    VOCABULARY_SPECIAL = "{source}: line {line} is {got}. Expected {expected}: {special} come first, in this order."
    VOCABULARY_COUNTS = (
        "{source}: not the counts of these words ({reason}). Expected {n:,} numbers of int64, none below 0: build the "
        "vocabulary again, or delete the counts."
    )

    # An index of the words of a corpus
    INDEX_MISSING = "{folder}: no index ({reason}). Expected the folder that elmo neighbours --index has written."
    INDEX_NUMBER = "{name} is {got}. Expected a whole number."
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
        "of these words, exactly as it is written there.{remedy}"
    )
    QUERY_OCCURRENCE = "the occurrence is {got}, but the query has {word} {n} times. Expected a number from 1 to {n}."

    # Embedding of corpora
    CORPUS_STDIN_TWICE = "- is given twice as input. Expected it once: standard input can be read once only."
    CORPUS_STDIN_JSON = (
        'the first line of standard input begins with {{", as JSON lines do, but standard input is read as text. To '
        "have the fields read, write it to a file that ends in .jsonl, and give that file."
    )
    CORPUS_DTYPE = "dtype is {got}. Expected {expected}."
    CORPUS_LAYERS = (
        "layers is {got}, which is no file. Expected one of {expected}, or a JSON file with the weights of a "
        'mix, such as {{"w": [0.0, 1.0, 0.0], "gamma": 1.0}} (in Python also a dict).'
    )
    CORPUS_MIX = (
        "{path}: not the weights of a mix ({reason}). Expected a JSON object with "
        '"w", a weight for each layer before the softmax, and perhaps "gamma".'
    )
    CORPUS_MIX_LAYERS = "the mix has {got} weights. Expected {expected}: one for each layer of the biLM."
    CORPUS_FLOAT16 = (
        "dtype is float16, but this biLM gives values beyond 65504, the largest of float16. Expected float32."
    )
    CORPUS_OUTPUT = (
        "the output is {got}. Expected the name of a file, like vectors.parquet, or of a folder, which gets shards."
    )
    CORPUS_FORMAT = "format is {got}. Expected one of {expected}."
    CORPUS_SUFFIX = (
        "{path}: the end of its name tells no format. Expected a name that ends in one of {expected}, or a name "
        "without a dot for a folder; or say with format (--format) what is meant."
    )
    CORPUS_SUFFIX_FORMAT = (
        "{path}: its name tells {told}, but format (--format) is {format}. Leave one of them out, or change the name."
    )
    CORPUS_SENTENCE = (
        "one vector a sentence was asked for (sentence, --sentence), which {format} can't hold here. Expected parquet, "
        "safetensors or npy."
    )
    CORPUS_NPY = (
        "an .npy file has one vector a sentence, but vectors of tokens were asked for. Add --sentence "
        "(sentence=True), or give another format."
    )
    CORPUS_HDF5 = "dtype is {got}, but HDF5 in AllenNLP's layout is float32. Leave it out, or give another format."
    CORPUS_SAFETENSORS = (
        "{path}: its header has no room for the words of more than {n:,} sentences. Write a folder of shards, with a "
        "smaller shard_size (--shard-size) if it is one, or another format, such as Parquet."
    )
    CORPUS_NUMBER = "{name} is {got}. Expected a whole number, 1 or more."
    CORPUS_WORKERS = (
        "{path} is one file, which one process writes. For several (workers, or the engine ray), give a folder as the "
        "output: it gets shards."
    )
    CORPUS_STOPPED = "stopped. The finished shards stay in {path}: the same command goes on with the others."
    CORPUS_EXTRA = (
        '{package} is missing, which this format needs. Get it with pip install "spacy-elmo[{extra}]", or choose hdf5 '
        "or spacy, which need no other package: as format (--format) for a folder, as the end of the name for a file."
    )
    CORPUS_BAD_LINE = (
        "{file}, line {line}: {reason}. Correct or remove the line; or give a folder as the output, for which bad "
        "lines are left out and listed."
    )
    CORPUS_FOREIGN = (
        "{folder}: has {got}, which no earlier command of this kind has written. Expected a new or empty folder, or "
        "one to go on with: give another one."
    )
    CORPUS_MANIFEST = (
        "{path}: damaged ({reason}). Begin anew with --no-resume (resume=False), which deletes the shards there."
    )
    CORPUS_SETTINGS = (
        "{folder}: its shards were made with {name} {got!r}, and now it is {expected!r}. Expected the same: give "
        "another folder, or begin anew with --no-resume (resume=False), which deletes the shards there."
    )
    CORPUS_CHANGED = (
        "{folder}: the shard {shard} was made of other text than the input has now. Expected the same files in the "
        "same order: give another folder, or begin anew with --no-resume (resume=False), which deletes the shards "
        "there."
    )
    CORPUS_TOKENIZER = (
        "lang is {got}, but tokenized says that the words are separated by blanks, which needs no language. Expected "
        "one of the two: leave out --lang (lang), or leave out --tokenized (tokenized)."
    )
    CORPUS_ENGINE = "engine is {got}. Expected one of {expected}."
    CORPUS_ADDRESS = (
        "address is {got}, but only the engine ray has one. Leave it out, or add --engine ray (engine='ray')."
    )
    RAY_MISSING = (
        'the engine ray needs Ray, which can\'t be imported ({reason}). Get it with pip install "spacy-elmo[ray]", or '
        "leave out the engine: one machine needs no Ray."
    )
    RAY_ADDRESS = (
        "no Ray cluster could be reached or started; its address is {got} ({reason}). Expected auto, on a machine of a "
        "cluster; host:port, as `ray start --head` prints it; or no address, to start Ray on this machine."
    )
    RAY_FOLDER = (
        "{folder}: the machine {machine} of the Ray cluster does not have the same folder at this path. Expected a "
        "folder that all machines share, on a network file system for example: give one as the output."
    )
    RAY_NO_CORE = (
        "no shard was finished for {seconds} seconds: a shard needs {needed}, and the Ray cluster has {got}. The "
        "command goes on when a machine with more joins (`ray start --address FIRST:6379`); Ctrl-C stops it."
    )
    RAY_BUSY = (
        "no shard was finished for {seconds} seconds. {shards} are being made or wait. A shard needs {needed}; the Ray "
        "cluster has {got}, of which {free} are free. If it is at work for others, the command goes on after that."
    )
    RAY_VERSION = (
        "the machine {machine} of the Ray cluster has spacy-elmo {got}. Expected {expected}, as the machine has where "
        "the command runs: install the same version on all machines."
    )
    RAY_TASK = (
        "a Ray task failed: {reason}. The finished shards stay. If a module is missing, install the same packages on "
        "all machines of the cluster, and give the same command again."
    )
    RAY_WORKER = (
        "a shard could not be made, because its Ray process or machine ended, {tries} times at most: {reason}. The "
        "finished shards stay: give the same command again, on machines with more memory or with smaller shards."
    )
    COLUMNS_LAYERS = "layers is 'all'. Expected 'top', 'mean', or the weights of a mix, as a JSON file or a dict."
    COLUMNS_TABLE = (
        "expected a dict of columns or a pandas DataFrame, got {got}. Change it into one of them, as to_pydict() or "
        "to_pandas() does with a table of Arrow."
    )
    COLUMNS_MISSING = "the table has the columns {got}. Expected {expected} among them: set column to its name."
    COLUMNS_ROW = "row {row} of the column {column!r} can't be used: {reason}. Expected a text, or a list of words."
    CORPUS_START = (
        "a worker process could not start ({reason}). If the error comes from the file that code (--code) names, "
        "correct that file: each worker imports it. Otherwise leave out workers (--workers): then no process starts."
    )
    CORPUS_WORKER = (
        "a worker process ended in the middle; perhaps the system had no memory left. The finished shards stay: give "
        "the same command again, with fewer workers or smaller shards."
    )
