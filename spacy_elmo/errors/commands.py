"""Messages of the commands."""


class CommandMessages:
    """Message templates."""

    # Arguments
    ARGUMENT_EMPTY = "an empty argument. Expected a name or a text; a dot means the current folder."
    OPTION_EMPTY = "{option} is followed by an empty argument. Expected a value; leave the option out for its default."
    PATH_FOLDER = "{path} is no folder. Expected the name of a folder."

    OUTPUT_LOST = "standard output can't be written ({reason}). Free some space, or send the output to another place."
    OUTPUT_STREAM = (
        "- as the output means standard output, to which no vectors can be written. Expected the name of a file."
    )

    # embed and similar
    EMBED_LANGUAGE = (
        "--lang is {lang}, but the biLM was trained on the language {language}, so its vectors may be useless. Give "
        "--model the folder of a biLM of {lang}."
    )
    EMBED_FILE = "input_file is {got}. Expected an open file: with open(...) as file, then embed_file(file, ...)."
    EMBED_LINES = "lines is the string {got}. Expected a list of sentences: split it into lines first."
    EMBED_BYTES = "{source}: opened as bytes. Expected text: open it without the b in its mode."
    EMBED_ENCODING = (
        "{source}: line {line} is not {encoding} ({reason}). Expected text in {encoding} throughout: convert the "
        "file, for example with iconv, or correct that line."
    )
    EMBED_UNREADABLE = "{source}: can't be read ({reason}). Expected text, one sentence a line."
    EMBED_NO_SENTENCES = "{source}: empty. Expected text, one sentence a line, words separated by blanks."
    EMBED_EMPTY = "texts without a word, such as empty lines, which were left out: {n:,}"
    EMBED_EMPTY_NUMBERS = "; the datasets are numbered without them"
    EMBED_EMPTY_LINES = (
        "{source}: these lines are empty: {lines}. Expected a sentence in every line: remove the empty ones. Or "
        "let python -m spacy elmo embed leave them out: give --lang CODE, whose tokenizer then splits the text (a "
        "warning tells how many there were), or write another file than HDF5, such as a .spacy file."
    )
    EMBED_KEY = (
        "{source}: line {line} can't be the key of its vectors: {reason}. Leave out --use-sentence-keys "
        "(use_sentence_keys), or change the line."
    )
    EMBED_KEY_TWICE = (
        "{source}: the lines {first} and {line} are the same sentence. Expected each sentence once, because it is "
        "used as a key: leave out --use-sentence-keys (use_sentence_keys), or remove one of the lines."
    )
    EMBED_DEVICE = (
        "the GPU {got} was asked for (cuda_device, or --gpu-id), but torch finds {seen}. Expected {expected}: set it "
        "to that."
    )
    EMBED_FORMAT = "output_format is {got!r}. Expected one of {expected}."
    EMBED_BATCH_SIZE = "batch_size is {got!r}. Expected a whole number, 1 or more."
    EMBED_FORMATS = (
        "{got} were given together. Expected one of --layers, --all, --top and --average: leave out the others."
    )
    EMBED_HDF5_ONLY = (
        "{option} is for one HDF5 file with all layers, the top one or their mean, as AllenNLP writes it. Leave it "
        "out, or give an output whose name ends in .hdf5, or add --format hdf5."
    )
    EMBED_NO_FORMAT = (
        "{path}: the end of its name tells no format, and {option} was given, as in AllenNLP, whose command always "
        "writes one HDF5 file. Expected --format hdf5 for such a file. For a folder of shards in Parquet add --format "
        "parquet."
    )
    EMBED_VOCAB_PATH = "--vocab-path is not used, as in AllenNLP: nothing is written to {got}"
    EMBED_INCLUDE_PACKAGE = (
        "--include-package is not used: {got} is not imported. If a saved pipeline needs functions of yours, give "
        "their file with --code"
    )
    EMBED_SAME = (
        "{path}: the file to read and the file to write are the same. Expected another file for the output: change "
        "its name."
    )
    EMBED_STOPPED = "stopped. {path} was not written. If there was a file of that name before, it is unchanged."
    PIPE_BOTH = (
        "--pipeline and {other} were given. Expected one of them, because a pipeline has its own biLM: leave out "
        "{other}."
    )
    MODEL_BOTH = "--model and {other} were given. Expected one of them: leave out {other}, or --model."
    MODEL_UNKNOWN = (
        "--model is {got!r}, which is no folder, no installed pipeline and no name of a biLM. Expected the folder of a "
        "biLM, of a pretraining run or of a saved pipeline; an installed pipeline with an elmo pipe; en_mini; or the "
        "name of a biLM in an installed package, such as en_midi, or of a published one ({expected})."
    )
    PIPE_ALONE = "--pipe is {got!r}, but no pipeline was given. Give a pipeline, or leave out --pipe."
    PIPE_LOAD = (
        "{pipeline}: can't be loaded ({reason}). Expected the folder of a saved spaCy pipeline, or the name of an "
        "installed one."
    )
    PIPE_OF_TRAINING = "{folder}: the folder that spacy train wrote pipelines to. Expected one of them: give {best}."
    PIPE_IS_BILM = (
        "{got}: the name of a biLM. Expected a saved pipeline, such as the model-best that spacy train writes: give "
        "its folder or package."
    )
    PIPE_NONE = (
        "{pipeline}: no elmo pipe; the pipeline has {got}. Expected one: give another pipeline, or add the pipe with "
        'nlp.add_pipe("elmo") and save it.'
    )
    PIPE_NAME = "{pipeline}: --pipe is {got!r}. Expected the name of an elmo pipe of the pipeline: {expected}."
    PIPE_SEVERAL = "{pipeline}: several elmo pipes, {got}. Expected the name of one of them with --pipe."
    PIPE_NO_BILM = (
        "{pipeline}: the model of the pipe {name!r} holds no biLM. Expected one made by spacy-elmo.BiLM.v1: give "
        "another pipeline or pipe."
    )
    SIMILAR_MODEL = (
        "{path}: neither a saved pipeline (a folder with config.cfg) nor a biLM (a folder with options.json and "
        "weights.hdf5). Expected one of these, or the name of a biLM, such as {embedded}."
    )
    SIMILAR_ORDER = (
        "{model}: a file, given as the model, and {text} as the text. Expected the model first: python -m spacy elmo "
        "similar {text} {model} --word WORD."
    )
    SIMILAR_KIND = (
        "{path}: not plain text, by its name. Expected text that is not packed, one sentence a line: convert the file, "
        "or use python -m spacy elmo neighbours, which also reads .jsonl, .spacy and packed files."
    )
    SIMILAR_ALONE = (
        "{got}: the only argument. Expected two, the model and the text: python -m spacy elmo similar {model} {text} "
        "--word WORD."
    )
    NEIGHBOURS_ORDER = (
        "{first} and {second}: two arguments. Expected one, the corpus or an index, since the model is an option: "
        "python -m spacy elmo neighbours {second} --model {first} --query TEXT --word WORD."
    )
    SIMILAR_MISSING = (
        "{source}: the word {word!r} does not occur. Expected a token of the text, exactly as it is written there: "
        "change --word, or add --ignore-case.{split}"
    )
    SIMILAR_ONCE = (
        "{source}: the word {word!r} occurs once, in line {line}. Expected two occurrences or more, to compare: change "
        "--word, add --ignore-case, or give more text.{split}"
    )
    SIMILAR_SPLIT = (
        " Without --lang, a biLM splits a text at blanks, so a word is one with the punctuation at its end: --lang en "
        "splits it with spaCy's English tokenizer."
    )
    SIMILAR_LANGUAGE = (
        "--lang is {got!r}, and {model} is a saved pipeline, which splits text with its own tokenizer. Expected --lang "
        "only with a biLM: leave it out."
    )
    SIMILAR_UNUSABLE = "{source}, line {line}: {reason}. Expected text that the tokenizer can split: correct it."
    SIMILAR_LINE = "{source}: --sentence is {got}, but that line has no {word!r}. Expected one of the lines {lines}."
    VECTORS_KEY = "the key {got} can't name a dataset: {reason}. Use another key, or none: then a number is used."
    VECTORS_KEY_TWICE = "{path}: the key {got} was written before. Expected each key once: change it, or use none."

    # --version
    JSON_ALONE = "--json was given before a command's name. Expected it after --version, or after the command's name."

    # demo
    DEMO_FOLDER = (
        "{path}: this folder can't be made ({reason}). Expected a place where you may write: give another folder, as "
        "in python -m spacy elmo demo FOLDER."
    )

    # info
    INFO_MISSING = (
        "{path}: no such file or folder. Expected the options.json, weights.hdf5 or softmax.hdf5 of a biLM, a file "
        "that spacy elmo embed wrote, the folder of a biLM, of a pretraining run or of a saved pipeline, or the "
        "name of an installed pipeline or of a biLM, such as {embedded}."
    )
    INFO_OPTIONS_TWICE = (
        "{got} options files were given with weights: {paths}. Expected one options file, and the weight files that "
        "belong to it; give several models as their folders."
    )
    INFO_FOLDER = (
        "{path}: a folder without options.json and weights.hdf5, and without config.cfg. Expected the folder of a "
        "biLM, of a pretraining run or of a saved pipeline."
    )
    INFO_VECTORS = (
        "{path}: not a file that info reads. Of files that spacy elmo embed wrote it reads HDF5 and .spacy. Expected "
        "one of these, or the options.json of a biLM."
    )
    INFO_UNCHECKED = (
        "{path}: not compared with its options, because they can't be read. Give a valid options.json with it."
    )

    # init-pretrain-config
    NOT_COUNTED = (
        "{reason} The settings depend on the text, so none were written. Leave out --train for the settings of a large "
        "text, and name the text in paths.train later."
    )
    INIT_PRETRAIN_SIZE = (
        "--init is {init} and --size {size}. Expected one of them: a biLM that is tuned has its own size. Leave out "
        "--size, or --init if you want a new biLM."
    )

    # init-config
    INIT_LANGUAGE = (
        "--lang is {got!r}, which can't be used ({reason}). Expected the code of a language that spaCy knows, like en."
    )
    INIT_TOKENIZER = (
        "the language is {got!r}, that of --lang or of the biLM's model card. Its tokenizer needs a package that is "
        "not installed ({reason}). Install it, or give another --lang."
    )
    INIT_EMPTY = "--pipeline names no component that is trained. Expected some of {expected}, separated by commas."
    INIT_TWICE = "--pipeline names {got!r} twice. Expected each component once: leave one out."
    INIT_ELMO = "--pipeline names 'elmo'. Expected only the components that listen to it: elmo is added automatically."
    INIT_EMBEDDER = (
        "--pipeline names {got!r}. In its place, the components of this config use elmo and a network of their own: "
        "leave it out. For a pipeline without ELMo there is python -m spacy init config."
    )
    INIT_UNKNOWN = "--pipeline names {got!r}, which spaCy does not know for the language {lang!r}. Expected {expected}."
    INIT_NO_TASK = (
        "--pipeline names {got!r}, which is not trained on a tok2vec: it follows rules or tables, changes the tokens, "
        "or is a part of another component. Expected {expected}. Leave it out, and add it to the trained pipeline "
        "with nlp.add_pipe."
    )
    INIT_SENTENCES_TWICE = (
        "--pipeline names 'sentencizer' and {other!r}. Both set the boundaries of sentences, so {other!r} could not "
        "learn its own. Leave one of them out."
    )
    INIT_SENTENCES_NONE = (
        "--pipeline names 'entity_linker', which needs sentences, but no component before it sets them. Add "
        "'sentencizer', 'senter' or 'parser' before it."
    )
    INIT_KB_NONE = (
        "--pipeline names 'entity_linker', which can't be trained without a knowledge base. Give the folder of one, "
        "saved with its to_disk, with --knowledge-base, or leave out 'entity_linker'."
    )
    INIT_KB_UNUSED = (
        "--knowledge-base was given, but --pipeline has no 'entity_linker'. Add it, or leave out --knowledge-base."
    )
    INIT_KB = (
        "--knowledge-base is {path}, which can't be used ({reason}). Expected the folder that to_disk of spaCy's "
        "InMemoryLookupKB wrote, with entities and aliases."
    )
    INIT_DOLLAR = (
        "{path}: has {got}, with which a variable begins in a config. Expected a path without it: rename the file or "
        "folder, or give a relative path from inside of it."
    )
    INIT_EXISTS = "{path}: exists. Give another file, or add --force to replace it."

    # weights
    WEIGHTS_NO_MIX = (
        "{pipeline}: no mix of a biLM's layers in the components {got}. Expected a component that has been trained on "
        "spacy-elmo.Tok2Vec.v1 or spacy-elmo.ElmoTok2Vec.v1: python -m spacy elmo init-config writes a config for one."
    )
    WEIGHTS_NOT_FINITE = (
        "{pipeline}: the mix of {component!r} ({place}) has w {w} and gamma {gamma}. Expected finite numbers: the "
        "training diverged or the file is damaged. Train again, with a lower learn_rate, or get the file again."
    )
    PLOT_MISSING = "--plot needs matplotlib, which is missing. Get it with pip install matplotlib."
    PLOT_FORMAT = "--plot is {path}, of the format {got!r}, which can't be drawn. Expected a name that ends in .png."
