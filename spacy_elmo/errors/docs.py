"""Messages on docs."""


class DocMessages:
    """Message templates."""

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
    SPANS_KIND = "model.get_spans returned {got} for a doc. Expected a list of spans."
