"""Messages on the components of the paper's other tasks."""


class TaskMessages:
    """Message templates."""

    TASK_NO_EXAMPLES = (
        "the component {name!r} can't be initialised: none of its examples ({got}) has {expected}. Give it examples "
        "with such annotations: nlp.initialize(lambda: examples)."
    )
    TASK_UNKNOWN_LABELS = (
        "the component {name!r} does not have these labels of its examples: {got}. It does not learn them. Expected "
        "labels that it had when it was initialised: make the component anew and initialise it with these "
        "examples, or put the labels in [initialize.components.{name}.labels]."
    )
    TASK_NOT_READY = "the component's network is not built yet. Call nlp.initialize(lambda: examples), or load weights."
    TASK_WEIGHTS = (
        "the saved weights of a component are not those of its network: {names} differ in name or shape. Load them "
        "with the settings that the component was saved with, as spacy.load does."
    )
    TASK_DAMAGED = (
        "the saved weights of a component are damaged ({reason}). Expected what the component has saved: get the files "
        "again, or train again."
    )
    TASK_EXTENSION_TAKEN = (
        "{owner}._.{name} was set by something else, such as another package. Remove that extension before the "
        "component is made: {owner}.remove_extension({name!r}). For coreference, another prefix helps as well."
    )
    TASK_EXTENSION_OURS = (
        "{owner}._.{name} is already the attribute of a component in this process that was made with {got}. This one "
        "has {expected}, and both need an attribute of this name. Set prefix to another name. If the other component "
        "is not used any more, you can instead remove its attribute first: {owner}.remove_extension({name!r})."
    )
    TASK_SIZE = "{name} is {got}. Expected a whole number, 1 or more."

    # Docs that hold several texts
    PART_TEXT = "the text for {key!r} is {got}. Expected a string."
    PART_SPANS = (
        "the doc {text} has span groups for some of {keys}, but the numbers of their spans are {got}. Expected one "
        "span for each key in doc.spans."
    )
    PART_LINES = (
        "the doc {text} has no span groups {keys}, and no line breaks that divide it into these. Expected one span for "
        "each key in doc.spans, or the texts in this order with a line break between them."
    )

    # Coreference
    COREF_TWICE = "the span {text!r} is in two clusters, {first} and {second}. Expected each mention in one cluster."
    COREF_CLUSTERS = (
        "the clusters are {got}. Expected a list of clusters, each of them a list of mentions: [[(0, 1), (6, 7)]] is "
        "one cluster of two mentions."
    )
    COREF_CLUSTER = (
        "cluster {number} is {got}. Expected a list of mentions: [[(0, 1), (6, 7)]] is one cluster of two mentions."
    )
    COREF_MENTION = (
        "cluster {number} has the mention {got}. Expected a span of the doc, or a pair of the number of its first "
        "token and that of the token after its last one: [[(0, 1), (6, 7)]] is one cluster of two such mentions."
    )
    COREF_BOUNDS = (
        "cluster {number} has the mention {got}, but the doc has {n} tokens. Expected a pair (first, after) with "
        "0 <= first < after <= {n}: the number of its first token and that of the token after its last one."
    )
    COREF_OTHER_DOC = (
        "cluster {number} has the mention {got}, which is a span of another doc. Expected spans of the doc that is "
        "annotated: give doc[first:after] of it, or the pair (first, after)."
    )
    COREF_KEY = "the span group {got} has no number. Expected {prefix}_1, {prefix}_2 ...: rename it."
    COREF_PREFIX = "prefix is {got}. Expected a Python identifier, such as coref_clusters."
    COREF_PREFIX_RESERVED = (
        "prefix is {got}, a name that spaCy or Python uses itself, so the attribute of docs could not be read. Set "
        "prefix to another name."
    )
    COREF_SHARE = "mentions_per_token is {got}. Expected a number above 0 and at most 1."

    # Entailment
    ENTAILMENT_CATS = (
        "the doc {text} has the cats {got}, from which the component {name!r} can't learn. Expected 1.0 for its class, "
        "and 0.0 for each of the others."
    )
    ENTAILMENT_CLASSES = (
        "the component {name!r} can't be initialised: there is only one class, {got}. Expected two or more: give it "
        "examples in whose cats all classes stand, or labels."
    )
    ENTAILMENT_NO = (
        "the component {name!r} can't be initialised: its model is of {nO} classes (nO), but it has {n}: {got}. Set "
        "model.nO to null, or to {n}. If the component was initialised before, make it anew."
    )
    ENTAILMENT_LONG = (
        "the premise or hypothesis of the doc {text} has {got:,} tokens. Expected {longest:,} at most: divide it, or "
        "raise model.longest."
    )

    # Semantic roles
    ROLES_THRESHOLD = "threshold is {got}. Expected a number from 0 to 1."
    ROLES_PREDICATE = (
        'the doc {text} has a predicate of {n} tokens, {got}. Expected spans of one token in doc.spans["predicates"]; '
        "other words of it are roles with the label V or C-V."
    )
    ROLES_ALONE = (
        'the doc {text} has the span groups {got}, but doc.spans["predicates"] has no predicates at these tokens. Add '
        "them there, a span of one token each, or remove the groups."
    )
    ROLES_LABEL = "the doc {text} has a role without a label in doc.spans[{key!r}]: {got}. Give it one, such as ARG0."
    ROLES_OVERLAP = (
        "the doc {text} has roles that overlap in doc.spans[{key!r}]: {got}. Expected each token in one role of a "
        "predicate at most."
    )
    ROLES_NO_PREDICATES = (
        'the doc {text} has no span group "predicates", and find_predicates is false in the component {name!r}. Set '
        'doc.spans["predicates"] to spans of one token each before the component runs, or find_predicates to true.'
    )

    # Answers
    ANSWERS_FORM = (
        "the answers to the question {question} are {got}. Expected a list of pairs: the place of the answer's first "
        "character in the context, and its text, such as [(14, 'Bonn')]."
    )
    ANSWERS_PLACE = (
        "the answer {got} does not begin at character {start} of the context of the question {question}. Expected the "
        "index of its first character in the context, and the text that stands there."
    )
    ANSWERS_NONE = (
        'the doc {text} has a span group "answer" without a span. Expected at least one right answer: questions '
        "without an answer can't be learned. Leave the doc or its span group out."
    )
    ANSWERS_OUTSIDE = (
        "the doc {text} has the right answer {got}, which is not in its context. Expected right answers inside the "
        'span in doc.spans["context"], or after the first line of a doc without this group.'
    )
    ANSWERS_NO_CONTEXT = (
        "the predicted doc {text} has no question or no context, but its reference has right answers. Expected a "
        "predicted doc of the same text: Example(make_question(nlp, question, context), reference)."
    )
    ANSWERS_WINDOW = (
        "longest_window is {longest} and window_overlap is {overlap}. Expected whole numbers with longest_window >= 1 "
        "and 0 <= window_overlap < longest_window."
    )
