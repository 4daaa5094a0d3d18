"""Messages on probes of layers, and on corpora with word senses."""


class AnalysisMessages:
    """Message templates."""

    # Probes
    PROBE_ATTRIBUTE = (
        "--attr is {got}, which spaCy's tokens do not have. Expected upos, tag, ent, another attribute of a token, "
        "such as dep or morph, or _.NAME for an extension attribute: change --attr."
    )
    PROBE_VALUE = (
        "--attr is {attribute}, but its value of a token is {got}. Expected a text, a number or a truth value, because "
        "it is used as a label: change --attr."
    )
    PROBE_KIND = "{path}: not a .spacy or .conllu file. Expected one of these: convert it with python -m spacy convert."
    PROBE_EMPTY = "{source}: no words. Expected a corpus of annotated docs: give another one."
    PROBE_ABSENT = (
        "{source}: no token has a value of the attribute {attribute}. Expected docs that are annotated with it: change "
        "--attr, or give another corpus."
    )
    PROBE_ONE_LABEL = (
        "all tokens of the training part have the same value of the attribute {attribute}: {got}. Expected two "
        "different labels or more: change --attr, or give another corpus."
    )
    PROBE_UNKNOWN_LABELS = (
        "no token of the part that is scored has a label of the training part: it has {got}, and the training part has "
        "{known}. Expected the same set of labels: change --attr, or give another corpus."
    )
    PROBE_LINE = "{source}, the sentence at line {line}: {reason}. Correct or remove it."

    # Word senses
    SENSES_LINE = "{source}, line {line}: {reason}. Expected text in UTF-8: correct or remove the line."
    SENSES_COLUMNS = (
        "{source}, line {line}: {got}. Expected a word, its lemma, its part of speech and its senses, divided by tabs, "
        "with - for no sense, or an empty line between sentences."
    )
    SENSES_LEMMA = (
        "{source}, line {line}: a sense without {missing}. Expected one, because senses are looked up by lemma and "
        "part of speech."
    )
    SENSES_TWICE = (
        "the test sets {first} and {second} are the same file. Expected each file once, because the last column counts "
        "the words of all: leave one out."
    )
    SENSES_NONE = "{source}: no word with a sense. Expected one or more: give another corpus."
    FIRST_SENSES_COLUMNS = (
        "{source}, line {line}: {got}. Expected a lemma, a part of speech and the first sense, divided by tabs."
    )
    FIRST_SENSES_EMPTY = (
        "{source}: no first senses. Expected lines of a lemma, a part of speech and the first sense, divided by tabs; "
        "leave out --first-senses to take those of TRAIN."
    )
    FIRST_SENSES_TWICE = (
        "{source}, line {line}: {lemma} ({pos}) again. Expected each lemma and part of speech once: leave one out."
    )
