"""Messages of the project's scripts. A message says what was got, what was expected and what to change."""

from __future__ import annotations


class Messages:
    """Message templates."""

    # Corpora
    CORPUS_UNREADABLE = "{path}: can't be read ({reason}). Expected a corpus in UTF-8."
    DOCS_UNREADABLE = "{path}: can't be read ({reason}). Expected a .spacy file: convert the corpus first."
    CORPUS_EMPTY = "{path}: no sentences in it that can be used. Expected one or more: check the file and the options."
    CORPUS_COLUMNS = "{path}, line {line}: {got} columns. Expected a word, a tab and a tag."
    CORPUS_TAG = "{path}, line {line}: the tag is {got}. Expected O, or B- or I- and a type."
    CORPUS_NO_WORD = "{path}, line {line}: the tag {got} without a word. Expected a word, or the tag O."
    CORPUS_LABEL = "{path}, line {line}: no label. Expected __label__, a name, a tab and a text; got {got}."
    CORPUS_CONLL = "{path}, line {line}: got {got}. Expected columns separated by tabs, the fourth one a word."
    CORPUS_MENTION = (
        "{path}, line {line}: got {got}. Expected (3 where a mention of cluster 3 begins, 3) where it ends, (3) for a "
        "mention of one word, and each mention that begins to end."
    )
    CORPUS_NUMBER = "{path}: no number. Expected a name that begins with the number of the book, like 158_emma.conll."
    CORPUS_NO_TEXT = "{path}, line {line}: no text after the label. Expected words separated by blanks."
    CORPUS_PAIR = "{path}, line {line}: {got}. Expected a class, a premise and a hypothesis, none of them empty."
    CORPUS_CLASS = "{path}, line {line}: the class is {got}. Expected one of {expected}."
    CORPUS_PARALLEL = "{path}: it and the files s1 and s2 beside it have {got} lines. Expected the same number."
    CORPUS_ROLE_COLUMNS = (
        "{path}, line {line}: {got}. Expected a word, two tags, lemma and frame (- for words that are no predicates), "
        "and as many columns of roles as the other lines of the sentence have, divided by tabs."
    )
    CORPUS_PREDICATES = "{path}, line {line}: {got} columns of roles. Expected {expected}, one for each predicate."
    CORPUS_ROLE = "{path}, line {line}: the role is {got}. Expected *, or brackets like (ARG0* ... *), none in another."
    CORPUS_SENSES = (
        "{path}, line {line}: got {got}. Expected a word, its lemma, its part of speech and its senses, divided by "
        "tabs; a sense is resource:kind:reference, and - stands for none."
    )
    SENSE_INDEX = "{path}, line {line}: got {got}. Expected WordNet's file index.sense: key, offset, number and count."
    CORPUS_QUESTIONS = (
        "{path}: not a file of questions with answers ({reason}). Expected SQuAD's layout, or paragraphs with context "
        "and questions: get the file again."
    )
    CORPUS_NAF = "{path}: can't be read ({reason}). Expected a text in NAF, an XML format: get the corpus again."

    # Assets
    DATA_FOLDER = "{path}: no such folder. Expected one with files of the project: change vars.data, or leave it empty."
    ASSET_FOLDER = "assets/{got}: project.yml has no files there. Expected one of the folders {expected}."
    ASSETS_MISSING = (
        "These files of the project did not come. Check the connection and run the same command again, or put them "
        "into a folder and name it with --vars.data FOLDER:"
    )
    ASSET_MISSING = "  {path} (MD5 {md5}), from {url}{others}"
    ASSET_NOT_USED = "; not used: {path}, which has another MD5, {got}"
    ASSET_OTHER = (
        "warning: {path} has the MD5 {got}; the results of this project were made with {md5}. Scores can differ: its "
        "origin may have changed."
    )
    GIT = (
        "{address}: can't be fetched with git ({reason}). Check the connection, or put the files {files} into a folder "
        "and name it with --vars.data FOLDER."
    )
    SENSE_INDEX_MISSING = (
        "{path}: no such file. Expected WordNet 3.0's index.sense (MD5 {md5}): install Debian's package "
        "wordnet-sense-index, or put the file into a folder and name it with --vars.data FOLDER."
    )

    # Releases
    DIST_FILES = "{folder}: the files {pattern} are {got}. Expected one: run make dist again."
    DIST_FAILED = "a step failed: {command}\nIts output:\n{output}"
    DIST_LOOPS = (
        "{file}: its compiled loops are not used ({reason}). Expected a file with compiled loops: build it with gcc 12 "
        "or newer."
    )
    DIST_PLACE = (
        "the package was imported from {place}. Expected a place in {folder}: unset what changes Python's path."
    )

    # Runs
    SEEDS = "--seeds is {got!r}. Expected whole numbers separated by blanks, like 0 1 2: change vars.seeds."
    TRAIN_FAILED = "{output}: training failed; what it said stands above. The command was: {command}"
    TASK = "the task is {got!r}. Expected one of {expected}."
    NETWORKS = "--networks is {got!r}. Expected some of {expected}, separated by blanks: change vars.networks."
    SETTING = "{path}: there is no setting {got}. Expected one that the task and its networks can change: add it."
    VECTORS_FAILED = "{output}: spaCy did not take the vectors; what it said stands above. The command was: {command}"
    PRETRAIN_FAILED = (
        "{output}: pretraining failed, or read no words; what it said stands above. The command was: {command}"
    )
    ELMO_FAILED = "the command failed; what it said stands above. The command was: {command}"
    TEXT = (
        "The text {got!r} is no file. Expected one with a sentence a line, words separated by blanks: name "
        "it with --vars.{option} FILE."
    )
    TEXT_LINES = "{path}: lines that can't be used: {bad:,}. The first one: {first}. Correct or remove them."
    EMBEDDING = "the embedding is {got!r}. Expected one of {expected}."
    EMBEDDING_RESULT = "{path}: can't be used ({reason}). Expected what train_embedding.py writes: run it again."
    SPEEDS = "no networks. Expected TASK/NETWORK, like ner/elmo, or several of them separated by blanks."
    SPEED_RESULT = "{path}: can't be used ({reason}). Expected what speed_of_runs.py writes: run it again."
    FLORET = "floret is not installed. Expected it for static vectors: pip install floret."
    INSIDE = "the question is {got!r}. Expected one of {expected}."
    TUNED_RESULT = "{path}: can't be used ({reason}). Expected what tune_bilm.py writes: run it again."
    INSIDE_RESULT = "{path}: can't be used ({reason}). Expected what `project run inside` writes: run it again."
    BILM = "the biLM is {got!r}. Expected one of {expected}, which the project ships."
    TEXT_SHORT = "{path}: {got} sentences. Expected {expected} or more: name a longer text."
    CORPUS_MISSING = "{path}: no such file. Expected a corpus of the project: run its steps assets and convert first."
    LEARNING = "{path}: can't be used ({reason}). Expected what record_run.py writes."
    PRETRAINED = "{run}: its {name} can't be used ({reason}). Expected the folder of a run of pretrain."
    RECORD_NAME = "NAME is {got!r}. Expected the name of a new file without folders: {path} exists, or is elsewhere."
    TOKENS_BEFORE = "{run}: it began from another biLM. Expected --before, the tokens that this biLM had read."
    EVALUATIONS = "{path}: no evaluations, or one that is infinite. Expected those of a run that has ended well."
    BILM_RESULT = "{path}: can't be used ({reason}). Expected what `project run bilms` or `bits` writes: run it again."
    SENSES_TARGET = (
        "{path}: its conversion would be written to {target}, which is the file itself, the list of first senses or "
        "the conversion of another file. Expected files with names of their own, and another folder."
    )
    SENSES_NONE = "{path}: no word has a sense of WordNet's list. Expected a corpus with senses: give another one."
    CORPUS_TARGET = "{source} would be replaced by its own conversion. Expected another file for the conversion."
    SENSES_EMPTY = "{path}: no senses. Expected WordNet's file index.sense."
    READ_RESULT = "{path}: can't be used ({reason}). Expected what read_paragraphs.py writes: run it again."
    RUN = "{path}: can't be used ({reason}). Expected what train_runs.py writes: delete its folder and train again."
    NO_MEASURE = (
        "{path}: its docs give no {missing}. Expected docs with the annotations that the task scores: convert the "
        "corpus again."
    )
    NO_DOCS = "{path}: no docs. Expected a test part to score: convert the corpus again."
    SEED_TWICE = "the seeds are {got!r}. Expected each once: a run that is counted twice would make means of one run."
    NO_RUNS = "{path}: no trained run in it. Expected NETWORK/seed-N with a run.json: train first."
    RESULT_TWICE = "results/{got}.json is the result of results/{other}.json. Expected one of its own: evaluate again."
    RESULT = "{path}: can't be used ({reason}). Expected what evaluate_runs.py writes: delete it and evaluate again."
    RESULTS = (
        "{path}: a file in it can't be used ({reason}). Expected what the scripts write: `git status results` shows "
        "which files were changed."
    )
    NO_RESULTS = "{path}: no results in it. Expected TASK/NETWORK/seed-N.json: train and evaluate first."

    # Shipping
    SHIP_FILES = "{model}: {missing} missing. Expected the folder of a biLM with its softmax and counts, from pretrain."
    SHIP_SIZE = "{target}: {got:,} bytes. Expected {most:,} at most: lower --mantissa-bits, or train a smaller biLM."
