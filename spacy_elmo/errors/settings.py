"""Messages on settings of components, architectures and mixes."""


class SettingMessages:
    """Message templates."""

    SAVED = "the saved biLM"
    IN_MEMORY = "the biLM in memory"
    ONE_FILE = (
        "{given} is set, but {missing} is not. Set both to use a biLM of your own, or neither to use the embedded "
        "one (in a component's config they are model.{given} and model.{missing})."
    )
    BILM_AND_FILES = (
        "bilm is {bilm}, and {files} is set too. Expected one of both: bilm for a folder or a name, or options_file "
        "and weight_file for two files (in a component's config they are model.bilm and so on)."
    )
    BILM_UNKNOWN = (
        "{got} names no biLM: {reason}. Expected the folder of a biLM or of a pretraining run, en_mini, or the name of "
        "a biLM in an installed package, such as en_midi, or of a published one ({expected}). In a component's config "
        "this is model.bilm. For two files set options_file and weight_file."
    )
    BILM_OTHER_NAMES = (
        "{folder}: no {missing}, but it has {found}. Expected options.json and weights.hdf5: rename the files, or "
        "give both with options_file and weight_file (in a component's config model.options_file and "
        "model.weight_file)."
    )
    FILE_SETTING = "{error} The setting {setting} (model.{setting} in a component's config) points there."
    BFLOAT16 = (
        'model.precision is "bfloat16", but this machine\'s {device} has no matrix multiplications in bfloat16. Set it '
        'to "float32", or to "auto", which uses bfloat16 only if the machine has it.'
    )
    CACHED_WORDS = "model.cached_words is {got!r}. Expected a whole number, 0 or more; 0 caches no words."
    STATE_SHAPE = (
        "State to start from: {name} has shape {got}. Expected {expected}: layers, directions, sentences, width."
    )
    STATEFUL_TRAINABLE = "model.stateful and model.trainable are both true. Set one of them to false."
    OTHER_LANGUAGE = (
        "the biLM of the pipe {name!r} was trained on the language {language!r}, but the pipeline's is {lang!r}, so "
        "its vectors may be useless. Set model.bilm to the folder of a biLM of {lang!r}."
    )
    MAX_BATCH_TOKENS = "max_batch_tokens is {got}. Expected 1 or more; 8192 is the default."
    MIX_LAYERS = "scalar_mix_parameters has {got} weights. Expected {expected}: one for each layer of the biLM."
    MIX_PARAMETERS = "scalar_mix_parameters has {got} values. Expected {expected}: one for each layer of the mix."
    MIX_FINITE = "scalar_mix_parameters are {got}. Expected finite numbers: to leave a layer out, give it -1e10."
    MIX_LAYER_NORM = 'layer_norm is {got!r}. Expected "none", "batch" or "token".'
    MIX_DROPOUT = "dropout is {got}. Expected a number, at least 0 and less than 1."
    MIX_GIVEN = (
        "the mix got {got} layers. Expected {expected}: the number in its setting layers, or of its "
        "scalar_mix_parameters, must be the number of the biLM's layers."
    )
    MODEL_DOCS = "the model returned {got} arrays for {expected} docs. Expected (layers, tokens, width) for each doc."
    ATTR = "attr is {got!r}. Expected a Python identifier, since it names the attributes doc._.{got} and so on."
    ATTR_TWICE = (
        "attr is {attr!r}, but the pipe {other!r} has the same. Set attr of one of them to another name: a doc has "
        "one set of layers under each name."
    )
    PIPE_TWICE = (
        "{name!r} is twice in the pipeline: add_pipe(..., source=...) adds the same pipe, not a copy. Remove one of "
        "them, or source the second from a pipeline that you load again."
    )
    MODEL_SHARED = (
        "the elmo pipe {name!r} has the same model as the pipe {other!r}, and a model has the settings of one pipe. "
        "Give it a model of its own, for example model.copy()."
    )
    STORE_NO_VECTORS = (
        'set_vectors is true, but store is "none", so .vector would have nothing to read. Set store to "layers", '
        '"layers_float16" or "mix", or set_vectors to false.'
    )
    STORE_UNUSED = (
        'the pipe {name!r} has store = "none", but no component listens to it: what it computes is dropped. Set store '
        'to "layers", or remove the pipe. This warning is given once.'
    )
    STORE = "store is {got!r}. Expected one of {expected}."
    STORE_FLOAT16 = (
        'store is "layers_float16", but this biLM gives values beyond 65504, the largest of float16. '
        'Set store to "layers".'
    )
    PRECISION = "model.precision is {got!r}. Expected one of {expected}."
    ATTR_TAKEN = (
        "attr is {attr!r}, but {owner}._.{name} was set by something else. Set attr to another name, or remove that "
        "extension."
    )
    WINDOW = (
        "window is {window} and overlap is {overlap}. Expected whole numbers with window >= 1 and "
        "0 <= overlap < window."
    )
    LONGEST_SENTENCE = "longest_sentence is {got}. Expected a whole number, at least window, {window}."
    SPAN_KEYS = 'keys is {got}. Expected a list of keys of doc.spans, such as ["premise", "hypothesis"].'
    ATTR_RESERVED = "attr is {got!r}, a name that spaCy or Python uses itself. Set attr to another name."
    WHOLE_NUMBER = "{name} is {got!r}. Expected a whole number."
    SAVED_DAMAGED = "the saved biLM is damaged or incomplete ({reason}). Save the complete pipeline again."
