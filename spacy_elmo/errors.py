"""Every exception class and every message of the package, once.

A message says what was got, what was expected, and which key or setting to change.
Templates are filled with ``str.format`` and keyword arguments.
"""

from __future__ import annotations

import reprlib

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 80


class ElmoError(ValueError):
    """Base class of the package's errors."""


class OptionsError(ElmoError):
    """An options file, or the sizes in it, can't be used."""


class WeightsError(ElmoError):
    """A weight file, or a set of parameters, can't be used."""


class VectorsError(ElmoError):
    """A file of embedded sentences can't be read or written."""


class SettingsError(ElmoError):
    """A setting of a component, an architecture or a training run can't be used."""


class CheckpointError(ElmoError):
    """A checkpoint of a training run can't be read or written."""


class CorpusError(ElmoError):
    """A text can't be used for training."""


class NotEmbeddedError(ElmoError, AttributeError):
    """A doc has no vectors that could be read; an AttributeError, as spaCy asks for attributes with hasattr."""


class Errors:
    """Message templates, grouped by area."""

    # Files
    FILE_MISSING = "{path}: no such file. Expected {expected}."
    FILE_NOT_REGULAR = "{path}: a folder or a special file. Expected {expected}."
    FILE_UNREADABLE = "{path}: can't be read ({reason}). Expected {expected}."
    FILE_UNWRITABLE = "{path}: can't be written ({reason})."
    FOLDER_MISSING = "{path}: can't be written, because the folder {folder} does not exist."

    # Options
    OPTIONS_SIZE = "{path}: more than {limit:,} bytes. Expected the options.json of a biLM, which has about 500."
    OPTIONS_JSON = "{path}: not valid JSON ({reason}). Expected the options.json of a biLM."
    OPTIONS_TOO_DEEP = "{path}: nested too deeply. Expected the options.json of a biLM: objects in one object."
    OPTIONS_DUPLICATE = "the key {key} comes twice in one object"
    OPTIONS_NOT_OBJECT = "{source}: {key} is {got}. Expected an object with the keys {expected}."
    OPTIONS_MISSING = "{source}: the key {key} is missing. Expected {expected}."
    OPTIONS_VALUE = "{source}: {key} is {got}. Expected {expected}."
    OPTIONS_PARAMETERS = (
        "{source}: these sizes make {got:,} parameters. Expected at most {limit:,} (4 GiB of float32); "
        "lower lstm.dim, lstm.projection_dim, lstm.n_layers, char_cnn.filters or char_cnn.n_highway."
    )

    # Characters
    CHARACTERS_MAX = "max_characters is {got}. Expected an integer of at least {limit}: begin, one byte, end."
    CHARACTERS_STRING = "a sentence is the string {got}. Expected a list of words: split it into tokens first."
    CHARACTERS_WORD = "a word is {got}. Expected a string."

    # HDF5 files
    HDF5_OPEN = "{path}: not an HDF5 file, or one cut short ({reason}). Expected {expected}."
    HDF5_READ = "{path}: {name} can't be read ({reason}). The file is damaged: get it again."
    HDF5_NAMES = "{path}: its list of datasets can't be read ({reason}). The file is damaged: get it again."
    HDF5_LINK = "{path}: {name} is a link to elsewhere. Expected the data itself, in this file."
    HDF5_KIND = "{path}: {name} is a {got}. Expected a {expected}."
    HDF5_DTYPE = "{path}: the dataset {name} holds {got}. Expected float32."
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
        "{path}: some of the optional datasets are there ({present}) and some are missing ({missing}). "
        "Expected all or none."
    )
    PARAMETERS = "{source}: the parameters and the options disagree: {problems}."
    PARAMETER_MISSING = "{name} is missing, expected shape {expected}"
    PARAMETER_UNEXPECTED = "{name} is unexpected"
    PARAMETER_SHAPE = "{name} has shape {got}, expected {expected}"
    PARAMETER_DTYPE = "{source}: {name} is {got}. Expected a numpy array of float32."
    PARAMETER_NOT_FINITE = "{source}: {name} holds {got} values that are NaN or infinite. Expected none."
    PARAMETER_PADDING = "{source}: row 0 of {name} is not zero. Expected zeros: the file has no row for padding."

    # Embedded sentences
    VECTORS_EMPTY = "{path}: no dataset 0 and no sentence_to_index. Expected a file of embedded sentences."
    VECTORS_GAP = "{path}: the dataset {name} is missing, though the file has {found}. Expected 0, 1, 2 ..."
    VECTORS_SHAPE = "{source} has shape {got}. Expected (layers, tokens, width) or (tokens, width)."
    VECTORS_DTYPE = "{source} can't be taken as float32 ({reason})."
    VECTORS_NOT_FINITE = "{source} has {got} values that are NaN or too large for float32. Expected none."
    VECTORS_SENTENCE = "the sentence is {got}. Expected a string."
    VECTORS_INDEX = "{path}: sentence_to_index is {got}. Expected one string: JSON of sentence: index."
    VECTORS_INDEX_ENTRY = "{path}: sentence_to_index gives the index {got}. Expected one of 0 to {last}."
    VECTORS_CLOSED = "{path}: the writer is not open. Expected it inside a with statement."

    # Settings
    SAVED = "the saved biLM"
    ONE_FILE = (
        "model.{given} is set, but model.{missing} is null. Set both to use a biLM of your own, "
        "or neither to use the embedded one."
    )
    FILE_SETTING = "{error} The setting model.{setting} of the component points there."
    BFLOAT16 = 'model.precision is "bfloat16", which this version does not offer. Set it to "float32" or "auto".'
    STATEFUL_TRAINABLE = "model.stateful and model.trainable are both true. Set one of them to false."
    NOT_FROZEN = "frozen is false, but this version does not tune a biLM with its pipeline. Set it to true."
    MAX_BATCH_TOKENS = "max_batch_tokens is {got}. Expected 1 or more."
    MIX_LAYERS = "scalar_mix_parameters has {got} weights. Expected {expected}: one for each layer of the biLM."
    MIX_PARAMETERS = "initial_scalar_parameters has {got} values. Expected {expected}: one for each layer of the mix."
    MIX_LAYER_NORM = 'layer_norm is {got!r}. Expected "none", "batch" or "token".'
    MIX_DROPOUT = "dropout is {got}. Expected at least 0 and less than 1."
    MIX_GIVEN = "the mix was given {got} layers. Expected {expected}: set layers to those of the biLM."
    ATTR = "attr is {got!r}. Expected a Python identifier, since it names the attributes doc._.{got} and so on."
    ATTR_TWICE = (
        "attr is {attr!r}, but the pipe {other!r} has the same. Set attr of one of them to another name: a doc keeps "
        "one set of layers under each."
    )
    STORE = "store is {got!r}. Expected one of {expected}."
    PRECISION = "model.precision is {got!r}. Expected one of {expected}."
    ATTR_TAKEN = (
        "attr is {attr!r}, but {owner}._.{name} was set by something else. Set attr to another name, or remove that "
        "extension."
    )
    WINDOW = "window is {window} and overlap is {overlap}. Expected window >= 1 and 0 <= overlap < window."
    LONGEST_SENTENCE = "longest_sentence is {got}. Expected at least window, {window}."

    # Pretraining
    CONFIG_SECTION = "{path}: the section [{section}] is missing. Expected [paths], [bilm] and [training]; got {got}."
    CONFIG_PATH = "{path}: paths.{name} is {got}, which is no file. Expected text, one sentence a line."
    CONFIG_UNKNOWN = "{path}: unknown settings in [training]: {got}. Expected some of {expected}."
    CONFIG_NUMBER = "training.{name} is {got!r}. Expected {expected}."
    FEW_SENTENCES = (
        "the training text has {got} sentences, but training.streams is {streams}. Expected a sentence for each stream "
        "at least: set training.streams lower, or give more text."
    )
    FEW_WORDS = (
        "the training text has {got} different words, the special three counted, but training.n_words is {n_words}. "
        "Set training.n_words to {got} or less."
    )
    TEXT_EMPTY = "{path}: no words. Expected text, one sentence a line, words separated by blanks."
    TEXT_UNREADABLE = "{path}: can't be read ({reason}). Expected text in UTF-8, plain or .xz."
    CONFIG_UNREADABLE = "{path}: not a configuration ({reason})."
    DIVERGED = (
        "the loss of step {step} is not finite: training has diverged. Begin anew with a lower training.learning_rate; "
        "{path} is of an earlier step."
    )
    CHECKPOINT_PARTS = (
        "{path}: not a checkpoint of this run ({problems}). Delete it to begin anew, or put the right one there."
    )
    SAVED_DAMAGED = "the saved biLM is damaged or cut short ({reason}). Save the pipeline again."
    ATTR_RESERVED = "attr is {got!r}, a name that spaCy or Python keeps to itself. Set attr to another one."
    WHOLE_NUMBER = "{name} is {got!r}. Expected a whole number."
    SPANS_KIND = "model.get_spans returned {got} for a doc. Expected a list of spans."
    RUN_DIFFERS = (
        "{path}: this run was begun with {key} = {old}, but now it is {new}. Set it back to go on, or give another "
        "output folder to begin anew."
    )
    CHECKPOINT = "{path}: can't be read ({reason}). Delete it to begin anew, or put a whole one there."
    RUN_MISSING = "{path}: no such file. Expected the folder of a pretraining run."

    # Docs
    SPANS_DOCS = "model.get_spans returned spans for {got} docs. Expected a list for each of the {expected} docs."
    SPANS_OTHER_DOC = "model.get_spans returned the span {got!r} for another doc than its own."
    SPANS_GAP = "model.get_spans returned no span for token {i} ({token!r}). Expected spans that cover every token."
    NOT_EMBEDDED = (
        "this doc has no ELMo layers under {attr!r}: no elmo pipe with that attr has seen it, or they were set to "
        "None. Add the pipe (nlp.add_pipe) and run it on the doc."
    )
    STORED_MIX = (
        'this doc has the mixed vectors under {attr!r} but not the layers, because the pipe has store = "mix". '
        'Set store to "layers".'
    )
    OTHER_TOKENS = (
        "this doc has {tokens} tokens, but the ELMo vectors under {attr!r} are those of {rows} tokens: it was cut, "
        "joined or retokenised after the elmo pipe. Run the pipe on it again."
    )
    SET_VALUE = "doc._.{attr} can only be set to None, which frees the layers. Got {got}."


def shown(value: object) -> str:
    """A short representation of an untrusted value, fit for a message."""
    try:
        return _REPR.repr(value)
    except ValueError:  # an integer with more digits than Python converts
        return f"<{type(value).__name__}>"
