"""Messages on docs."""


class DocMessages:
    """Message templates."""

    SPANS_DOCS = "model.get_spans returned {got} lists of spans. Expected a list for each of the {expected} docs."
    SPANS_OTHER_DOC = "model.get_spans returned the span {got!r} of another doc. Expected spans of the doc itself."
    SPANS_GAP = "model.get_spans returned no span for token {i} ({token!r}). Expected spans that cover every token."
    NOT_EMBEDDED = (
        "this doc has no ELMo layers under {attr!r}: no elmo pipe with that attr has processed it, or they were set "
        "to None, or the doc is a copy without them (as_doc without copy_user_data=True, a DocBin without "
        'store_user_data=True). Add the pipe, nlp.add_pipe("elmo"), and run it on the doc.'
    )
    STORED_MIX = (
        'this doc has the mixed vectors under {attr!r} but not the layers, because the pipe has store = "mix". '
        'Set store to "layers".'
    )
    STORED_VECTORS = (
        "this doc has vectors under {attr!r}, but not the layers that they were made of. The pipe that made them has "
        'store = "mix", or the doc is from a file that spacy elmo embed wrote without layers. Set store to "layers", '
        "or embed the text again with --layers all."
    )
    STORED_NONE = (
        'this doc has no ELMo vectors under {attr!r}, because the pipe has store = "none": only components that listen '
        'get them. Set store to "layers". For a saved pipeline whose pipe is named elmo: '
        'spacy.load(path, config={{"components.elmo.store": "layers"}}).'
    )
    OTHER_TOKENS = (
        "the tokens here are not those that the ELMo vectors under {attr!r} belong to: the doc was joined with one "
        "that has none, or its text is another. Run the pipe on it again."
    )
    OTHER_VECTORS = (
        "this has an ELMo vector of width {width}, but what it is compared with has a vector of width {got}: no ELMo "
        "vector, or one of another biLM. Run the same pipe on both; a lexeme, nlp.vocab[word], stands in no sentence "
        "and has no ELMo vector. If a doc was embedded and then written, or sent "
        "by another process, call spacy_elmo.restore_vectors(doc)."
    )
    HOOKS_LOST = (
        "set_vectors is true in a worker process, such as those of nlp.pipe with n_process. spaCy does not send what "
        "set_vectors sets: in the process that gets the docs, .vector has the shape (0,). There, iterate over "
        "spacy_elmo.restore_vectors(nlp.pipe(...)), or read doc._.elmo before .vector, which restores it too. A worker "
        "can't see whether that is done. If it is, silence this warning before nlp.pipe with "
        'warnings.filterwarnings("ignore", category=spacy_elmo.errors.LostVectorsWarning).'
    )
    TRUNCATED = (
        "the token {word} has {got:,} bytes in UTF-8, but the biLM reads the first {limit} of a token: the others "
        "make no difference to its vectors. This warning is given once."
    )
    TRUNCATED_WHERE = "How many tokens were cut so far is in {where}."
    SET_VALUE = "doc._.{attr} can only be set to None, which frees the layers. Got {got}."
    SET_PART = "the attributes of tokens and spans can't be set. To free the layers of a doc, set doc._.{attr} to None."
    SPANS_GETTER = "model.get_spans is {got}. Expected a function of docs, such as spacy-elmo.sentences.v1 makes."
    SPANS_KIND = "model.get_spans returned {got} for a doc. Expected a list of spans."

    # A vector for each text
    ENCODE_TEXT = "text {number} can't be tokenised: {reason}. Change it, or give its words as a list."
    ENCODE_KIND = "text {number} is {got}. Expected a string or {expected}."
    ENCODE_TEXTS = "the texts are {got}. Expected strings, as in a list; or one string or {expected}."
    ENCODE_UNUSABLE = "text {number} has {reason}. Change it."
    ENCODE_PIPELINE = "the pipeline is {got}. Expected what spacy.load or spacy.blank returns, then the texts."
    ENCODE_NO_PIPE = (
        'the pipeline has no elmo pipe that is enabled; it has {got}. Expected one: add it with nlp.add_pipe("elmo").'
    )
    ENCODE_SEVERAL = "the pipeline has several elmo pipes. Expected the name of one of them as elmo: {expected}."
    ENCODE_NAME = "elmo is {got}. Expected the name of an elmo pipe that is enabled: {expected}."
    ENCODE_LOST = (
        "{got} docs came out of the pipeline for {expected} texts, because its error handler leaves out those that "
        "fail. Expected a doc for each text: remove the handler, or those texts."
    )
