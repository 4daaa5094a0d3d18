"""Messages on listeners, their mixes, and biLMs that are tuned."""


class ListeningMessages:
    """Message templates."""

    LISTENER_ALONE = (
        "a component listens to an elmo pipe{named}, but there is none before it: the pipeline has no such pipe, "
        'or has it later, or under another name. Put it first, nlp.add_pipe("elmo", first=True), or set upstream, '
        "which is {upstream!r}, in the component's spacy-elmo.Listener.v1 to its name."
    )
    LISTENER_RENAMED = (
        "a component listens to an elmo pipe named {upstream!r}, which was renamed to {pipe!r}. Rename it back, or set "
        "upstream in the component's spacy-elmo.Listener.v1 to {pipe!r} in the config before the pipeline is built."
    )
    LISTENER_SEVERAL = (
        'upstream is "*", but there are several elmo pipes before this component: {got}. Set upstream in its '
        "spacy-elmo.Listener.v1 to one of these names."
    )
    LISTENER_NOTHING = (
        "a component listens to the pipe {pipe!r}, but a doc has nothing in doc._.{attr}_layers: the pipe is "
        "disabled, removed or comes later, or the doc is a copy without them (as_doc, or in an entity_linker). Run "
        "{pipe!r} on it first."
    )
    LISTENER_DROPPED = (
        'the pipe {pipe!r} has store = "none", so it holds the layers of a doc until each component that listens has '
        "predicted on it once. A copy of the doc has none, and a network can read the same listener in one place only. "
        'Run {pipe!r} on this doc again, or set its store to "layers".'
    )
    LISTENER_UNTRAINED = (
        "a component that is trained listens to the pipe {pipe!r}, but a doc has nothing in doc._.{attr}_layers: the "
        "pipe did not run in this update. If it is in frozen_components, add it to annotating_components too, or "
        "remove it from frozen_components (frozen = true in its own config is enough). If it is disabled, enable it. "
        "If this is spacy debug model or spacy pretrain, which run a component alone, add "
        """--nlp.after_pipeline_creation '{{"@callbacks": "spacy-elmo.ReplaceListeners.v1"}}'."""
    )
    LISTENER_WIDTH = (
        "width is {width} in a component's spacy-elmo.Listener.v1, but the biLM of the pipe {pipe!r} gives {got}. Set "
        "width to {got}, or use the biLM that the component was trained with."
    )
    LISTENER_WIDTH_KIND = (
        "width is {got!r} in spacy-elmo.Listener.v1. Expected the width of the biLM, a whole number: 256 for the "
        "embedded one, else twice its projection_dim."
    )
    LISTENER_UPSTREAM = 'upstream is {got!r} in spacy-elmo.Listener.v1. Expected the name of an elmo pipe, or "*".'
    LISTENER_CHANGED = (
        "the biLM of the pipe {pipe!r} is not the one with which this component was trained, so its predictions may "
        "be useless. Use that biLM, or train the component again. This warning is given once."
    )
    LISTENER_LINKER = (
        "the component {name!r} is an entity_linker, which works on copies of the docs, and the copies have no "
        "layers. Give it spacy-elmo.BiLM.v1 as source, in place of spacy-elmo.Listener.v1."
    )
    TUNED_LATE = (
        "a component used a biLM that is tuned after the step of its batch had ended, so its gradient would be lost. "
        "Run each component's network once in an update, and do not predict between its forward and its backward "
        "pass; or update with sgd=False and call finish_update of each pipe, as spacy train does."
    )
    LISTENER_TOKENS = (
        "the tokens here are not those that the ELMo vectors under {attr!r} belong to: the doc was retokenised after "
        "the elmo pipe. While its biLM is tuned, retokenise before that pipe."
    )
    REPLACE_PATHS = (
        "replace_listeners was given paths that are neither the component's tok2vec block nor its listeners to "
        '{pipe!r}. Give "model.tok2vec" as often as it has listeners, or the path of each listener, such as '
        '"model.tok2vec.elmo.source". Nothing was replaced.'
    )
    MIX_NUMBER = "layers is {got!r}. Expected a whole number, 1 or more, or null: as many as the source gives."
    MIX_L2 = "l2 is {got!r}. Expected a finite number of float32, 0 or more."
    MIX_GAMMA = "gamma is {got!r}. Expected a finite number of float32."
    MIX_LAYERS_SET = "scalar_mix_parameters has {got} weights, but layers is {expected}. Give a weight for each layer."
    MIX_AXES = (
        "the mix was given an array of shape {got}. Expected (layers, tokens, width): its source must be "
        "spacy-elmo.Listener.v1 or spacy-elmo.BiLM.v1."
    )
    NO_PLACE = (
        "elmo and output_elmo of spacy-elmo.ElmoTok2Vec.v1 are both null. Expected spacy-elmo.Tok2Vec.v1 in one of "
        "them or both. For x alone, take spacy.Tok2Vec.v2."
    )
    SOURCE_ALONE = (
        "{name} of spacy-elmo.ElmoTok2Vec.v1 is a source of layers. Expected spacy-elmo.Tok2Vec.v1, which has it as "
        "its source, and a mix."
    )
    BILM_WIDTH_KIND = (
        "width is {got} in spacy-elmo.BiLM.v1. Expected the width of the layers, a whole number, or null: that of its "
        "files."
    )
    BILM_WIDTH = "width is {width} in spacy-elmo.BiLM.v1, but its files give {got}. Set width to {got}, or to null."
    LOGGER_FILE = "{path}: can't be written ({reason}). Set output_file of spacy-elmo.MixLogger.v1 to another path."
    CACHE_MB = "cache_mb is {got}. Expected a whole number of MiB, 0 or more; 0 caches nothing in memory."
    FACTOR = "learn_rate_factor is {got}. Expected a finite number above 0."
    STATEFUL_TUNED = "model.stateful is true and frozen is false. Set stateful to false, or frozen to true."
    UNFREEZE_PIPE = "pipe is {got!r}. Expected the name of an elmo pipe with frozen = false; there is {expected}."
    UNFREEZE_EVERY = "every is {got}. Expected a whole number, 1 or more."
    UNFREEZE_START = "start is {got}. Expected a whole number, 0 or more."
    UNFREEZE_UNIT = 'unit is {got}. Expected "epoch" or "step".'
