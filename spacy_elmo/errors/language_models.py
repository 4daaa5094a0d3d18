"""Messages on a biLM with its softmax, and on what it is evaluated on."""


class LanguageModelMessages:
    """Message templates."""

    # softmax.hdf5
    SOFTMAX_MISSING = (
        "{path}: missing datasets: {missing}. Expected softmax/W and softmax/b; at its root the file has {found}."
    )
    SOFTMAX_SHAPES = (
        "{source}: softmax/W has shape {weight} and softmax/b {bias}. Expected (words, projection_dim) and (words,), "
        "with at least one word and one dimension."
    )
    SOFTMAX_DTYPE = "{source}: {name} is {got}. Expected a numpy array of float32, float16 or float64."
    SOFTMAX_STORED = "{path}: not written: dtype is {got}. Expected float32 or float16."
    SOFTMAX_NOT_FINITE = (
        "{path}: not written: {name} has {got} values that are NaN, infinite or too large for {dtype}. Expected none."
    )
    ADAPTIVE_MISSING = (
        "{path}: missing datasets: {missing}. Expected adaptive/cutoffs, and with it the weight, bias, down and words "
        "of an adaptive softmax; at its root the file has {found}."
    )
    ADAPTIVE_BOTH = "{path}: holds both softmax and adaptive. Expected one output layer: delete the other group."
    ADAPTIVE_CUTOFFS = (
        "{path}: adaptive/cutoffs is {got}. Expected up to 16 numbers of int64 above 0, each larger than the one "
        "before: where the clusters of words begin."
    )
    ADAPTIVE_SHAPES = (
        "{source}: the arrays of the adaptive softmax do not fit its cutoffs {cutoffs}: {problems}. Expected a row "
        "for each word and cluster, and in each cluster a quarter of the width of the one before, at least 1."
    )

    # Folders
    MODEL_FOLDER = (
        "{folder}: no such folder. Expected the folder of a biLM with its softmax ({expected}), or that of a "
        "pretraining run."
    )
    MODEL_FILES = "{folder}: {missing} missing. Expected the folder of a biLM with its softmax: {expected}."
    MODEL_OF_NEW_RUN = (
        "{path}: the folder of a pretraining run that has not written all of model-best yet. Expected one that has "
        "been evaluated once: wait, resume the run if it has ended, or lower evaluation.every."
    )
    MODEL_HOLDS_OUTPUT = (
        "{path}: the file to write is in {folder}, which is the folder of the model, or that of the run that made it. "
        "Expected a place outside: give another name."
    )
    LAYERS_NOT_FINITE = (
        "the biLM gives values that are NaN or infinite for the sentence {words}. Expected finite ones: its weights "
        "are damaged, or too large. Get its files again."
    )
    MODEL_NO_SOFTMAX = (
        "{folder}: no softmax.hdf5, so this biLM predicts no words. That of the official biLM original is a file of "
        "its own: docs/pretraining.md tells where. For another biLM fit one by tuning: python -m spacy elmo pretrain, "
        "with paths.init = {folder} in its configuration. Then evaluate the model that this writes."
    )
    SOFTMAX_PACKAGE = (
        "{name}: its softmax is not installed, so it predicts no words. Expected the package {package}: in a copy of "
        "this project's repository, pip install ./{folder}. Or fit a new softmax: set training.frozen_tokens, for "
        "example to 2000000, in the configuration of python -m spacy elmo pretrain, with paths.init = {name}."
    )
    SOFTMAX_PACKAGE_FILES = (
        "{folder}: {missing} missing. Expected all files of the package {package}: install it again from a copy that "
        "has them, or uninstall it."
    )
    SOFTMAX_PACKAGE_OTHER = (
        "{folder}: this softmax belongs to other weights of {name}: to those of SHA-256 {got}, but {expected} are "
        "installed. With these it predicts nothing of use. Install spacy-elmo and {package} from the same release, or "
        "uninstall the latter and set training.frozen_tokens to fit a new softmax."
    )
    MODEL_UNFINISHED = (
        "{folder}: the process that wrote it ended before it was complete, so its files may be of two models. Resume "
        "the run, which writes it again, or give another folder."
    )
    MODEL_SOFTMAX_DIM = (
        "{source}: the softmax has rows of {got} values, but the biLM's projection_dim is {expected}. Expected the "
        "same number: use softmax.hdf5 and options.json of the same model."
    )
    MODEL_WORDS = (
        "{source}: the vocabulary has {words:,} words, but the softmax {rows:,} rows. Expected a row for each word: "
        "use vocabulary.txt and softmax.hdf5 of the same model."
    )

    # Packing
    PACK_SAME = (
        "{path}: the folder to read and the folder to write are the same. Expected another folder for the packed "
        "model: change OUT."
    )
    PACK_EXISTS = "{path}: exists. Give another folder, or add --force to replace the biLM in it."
    PACK_RUN = "{path}: the folder of a pretraining run. Expected a folder of its own for the packed model: change OUT."
    PACK_FILE = "{path}: a file. Expected the name of a folder: change OUT."
    PACK_STOPPED = "stopped. Nothing was written to {path}."

    # Scoring
    SCORE_NO_SENTENCES = "no sentence to score. Expected text of at least one sentence."
    SCORE_STREAMS = "streams is {got!r}. Expected a whole number, 1 or more."
    SCORE_NOT_FINITE = (
        "the loss of a sentence is not finite: the biLM or its softmax holds values that are too large. Get the files "
        "again, or train again with a lower learning rate."
    )
    SCORE_COPY = (
        "{folder}: the temporary copy of the text can't be written ({reason}). Make room there, or set the "
        "environment variable TMPDIR to another folder."
    )
    SCORE_STOPPED = "stopped before all sentences were scored."
