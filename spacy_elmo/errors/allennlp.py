"""Messages of the AllenNLP-compatible module."""


class AllenNLPMessages:
    """Message templates."""

    ELMO_NO_TENSOR = "{name} is {got}. Expected a tensor of integers: make it with batch_to_ids(sentences)."
    ELMO_DTYPE = "{name} is a tensor of {got}. Expected integers: make it with batch_to_ids(sentences)."
    ELMO_SHAPE = (
        "inputs has shape {got}. Expected (batch, tokens, {characters}) or more dimensions between the first two: "
        "make it with batch_to_ids(sentences)."
    )
    ELMO_RAW_SHAPE = (
        "inputs has shape {got}. Expected (batch, tokens, {characters}): make it with batch_to_ids(sentences)."
    )
    ELMO_CHARACTERS = (
        "inputs has {got} characters a word, but the biLM reads {expected}. Make it with "
        "batch_to_ids(sentences, max_characters={expected})."
    )
    ELMO_RANGE = "inputs holds {got}. Expected character ids of 0 to 261: make it with batch_to_ids(sentences)."
    ELMO_DEVICE = "{name} is on {got}, but the biLM is on {expected}. Move it there: {name}.to('{expected}')."
    ELMO_GAP = (
        "Sentence {row} of {name} has a word after padding. Expected all words of a sentence before its padding, "
        "which is 0: make it with batch_to_ids(sentences)."
    )
    ELMO_TRACED = (
        "torch.jit.trace can't record the biLM: the graph would give wrong vectors. Use the module itself, or "
        "torch.compile."
    )
    ELMO_WORDS_SHAPE = "word_inputs has shape {got}. Expected the shape of inputs without the characters, {expected}."
    ELMO_WORD_NEGATIVE = "word_inputs holds {got}. Expected 0 for padding, or a place in vocab_to_cache."
    ELMO_WORD_UNKNOWN = (
        "word_inputs holds {got}, but vocab_to_cache has {size} words, and inputs has no characters for that word. "
        "Give its character ids in inputs, or a place in vocab_to_cache."
    )
    ELMO_NO_VOCABULARY = "word_inputs were given, but vocab_to_cache was not: the characters in inputs are read."
    ELMO_OUTPUTS = "num_output_representations is {got!r}. Expected a whole number, 1 or more."
    ELMO_DROPOUT = "dropout is {got}. Expected a share, 0 to 1."
    ELMO_MODULE_FILES = (
        "options_file or weight_file was given together with module. Set both files to None, or leave out module."
    )
    ELMO_MODULE_STATE = (
        "stateful is true, but module is not a BiLM of this package, so no state can be carried in it. Set stateful "
        "to false."
    )
    ELMO_MODULE_VOCABULARY = (
        "vocab_to_cache was given, but module is not a BiLM of this package. Give the words to that module."
    )
    ELMO_VOCABULARY = "vocab_to_cache is {got}. Expected a list of at least one word (the first is for padding)."
    ELMO_CACHED_AND_TRAINED = (
        "requires_grad is true together with vocab_to_cache. Cached vectors can't change with the biLM. Set "
        "vocab_to_cache to None, or requires_grad to false."
    )
    ELMO_PARAMS = "The parameters of Elmo are {got}. Expected a mapping of the arguments' names to values."
    ELMO_PARAMS_UNKNOWN = "The parameters of Elmo have {got}, which is unknown. Expected some of: {expected}."
    ELMO_PARAMS_MISSING = "The parameters of Elmo lack {missing}. Set it{hint}."
    ELMO_PARAMS_VALUE = "The parameter {name} of Elmo is {got}. Expected {expected}."
    ELMO_RESET = (
        "The mask of reset_states has {got}. Expected a tensor of shape {expected}, a value for each row whose state "
        "is carried."
    )
    ELMO_STATES = (
        "_states was set to a value of type {got}. Expected None, which lets the next batch start from the zero state: "
        "the carried state can't be set to another one."
    )
