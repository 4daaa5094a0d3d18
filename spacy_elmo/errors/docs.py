"""Messages on docs."""


class DocMessages:
    """Message templates."""

    SPANS_DOCS = "model.get_spans returned spans for {got} docs. Expected a list for each of the {expected} docs."
    SPANS_OTHER_DOC = "model.get_spans returned the span {got!r} for another doc than its own."
    SPANS_GAP = "model.get_spans returned no span for token {i} ({token!r}). Expected spans that cover every token."
    NOT_EMBEDDED = (
        "this doc has no ELMo layers under {attr!r}: no elmo pipe with that attr has seen it, or they were set to "
        "None, or it was made from other docs (Doc.from_docs, as_doc and a DocBin without store_user_data leave them "
        'behind). Add the pipe, nlp.add_pipe("elmo"), and run it on the doc.'
    )
    STORED_MIX = (
        'this doc has the mixed vectors under {attr!r} but not the layers, because the pipe has store = "mix". '
        'Set store to "layers".'
    )
    OTHER_NUMBER = (
        "this doc has {tokens} tokens, but the ELMo vectors under {attr!r} are those of {rows} tokens: it was cut, "
        "joined or retokenised after the elmo pipe. Run the pipe on it again."
    )
    OTHER_TOKENS = (
        "the tokens here are not those whose ELMo vectors stand under {attr!r}: the doc was retokenised after the elmo "
        "pipe. Run the pipe on it again."
    )
    TRUNCATED = (
        "the token {word} has {got:,} bytes in UTF-8, but the biLM reads the first {limit} of a token: the rest makes "
        "no difference to its vectors. This is said once. How many tokens were cut so far stands in {where}."
    )
    SET_VALUE = "doc._.{attr} can only be set to None, which frees the layers. Got {got}."
    SPANS_KIND = "model.get_spans returned {got} for a doc. Expected a list of spans."
