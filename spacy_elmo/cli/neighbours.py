"""`elmo neighbours`: the words of a corpus that are nearest to a word in a sentence of one's own."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from spacy.cli._util import import_code

from ..allennlp.embedder import ElmoEmbedder
from ..analysis.neighbours import MIX, Layer, WordIndex, build_index, find_word, is_index
from ..errors import CommandError, CorpusError, shown
from ..formats.atomic import writing
from ..modules.loading import EMBEDDED
from .console import msg, print_json
from .shared import (
    STANDARD_INPUT,
    WIDEST,
    Code,
    GpuId,
    Json,
    Model,
    PipeName,
    bilm_of,
    embedder_of,
    folder_argument,
    source_of,
)
from .similar import marked

CONTEXT = {"allow_extra_args": True}  # which are refused by a message


def neighbours(
    context: typer.Context,
    corpus: Annotated[
        Path,
        typer.Argument(
            metavar="CORPUS",
            help="Text, one sentence a line (plain, .gz, .xz, .zst), .jsonl or .spacy: a file, folder or pattern; - is "
            "stdin; or the folder of an index",
        ),
    ],
    query: Annotated[str, typer.Option("--query", "-q", metavar="TEXT", help="A sentence of your own")],
    word: Annotated[
        str, typer.Option("--word", "-w", metavar="WORD", help="The word in it, exactly as it is written there")
    ],
    occurrence: Annotated[
        int,
        typer.Option(
            "--occurrence", min=1, metavar="N", help="Which one, if the word occurs several times in the query"
        ),
    ] = 1,
    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            "-i",
            metavar="FOLDER",
            parser=folder_argument,
            help="Folder of the index, which is written if it is missing; default: a temporary one",
        ),
    ] = None,
    n: Annotated[int, typer.Option("--n", "-n", min=1, metavar="N", help="Neighbours shown")] = 10,
    other_words: Annotated[bool, typer.Option("--other-words", help="Leave out the same word")] = False,
    one_per_sentence: Annotated[
        bool, typer.Option("--one-per-sentence", help="Show one neighbour of each sentence; equal sentences are one")
    ] = False,
    model: Model = EMBEDDED,
    pipe: PipeName = None,
    code: Code = None,
    lang: Annotated[
        str | None,
        typer.Option(
            "--lang",
            "-l",
            metavar="CODE",
            help="spaCy language that tokenises corpus and query; default: words are separated by blanks",
        ),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(metavar="LAYER", help="Layer of the vectors, or mix (the mean of all); default: the last one"),
    ] = None,
    gpu_id: GpuId = -1,
    force: Annotated[bool, typer.Option("--force", "-F", help="Make the index again if it exists")] = False,
    as_json: Json = False,
) -> None:
    """Find the words of a corpus nearest to one of yours.

    Your word is in a sentence of your own: --query and --word.
    The vectors of all words of the corpus are written to an index once, with --index. Later queries read it.
    """
    import_code(code)
    if context.args:  # `similar` has the model as an argument
        raise CommandError(
            f"{corpus} and {context.args[0]}: two arguments. Expected one, the corpus or an index, since the "
            f"model is an option: python -m spacy elmo neighbours {context.args[0]} --model {corpus} --query "
            "TEXT --word WORD."
        )
    embedder = embedder_of(bilm_of(model, pipe), gpu_id)
    with TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        if is_index(corpus):
            settings = {"--index": index, "--lang": lang, "--layer": layer, "--force": force or None}
            for option in [name for name, value in settings.items() if value is not None]:
                raise CommandError(
                    f"{option} was given, but {corpus} is an index, which has its own. Leave out {option}."
                )
            opened = WordIndex(corpus, embedder)
        else:
            find_word(query, word, occurrence, lang)  # before all words of the corpus are embedded
            source = corpus
            if corpus == STANDARD_INPUT:
                from ..corpus.reading import standard_input

                source = Path(scratch, "standard-input.txt")
                with writing(source, CommandError), source.open("wb") as file:
                    shutil.copyfileobj(standard_input(), file)
            folder = index or Path(scratch, "index")
            try:
                opened = _open_index(source, folder, embedder, lang, _layer_of(layer), model, replace=force)
            except CorpusError as error:
                raise CorpusError(str(error).replace(str(source), source_of(corpus))) from error
        meta, of = opened.corpus.meta, opened.header.layer
        words, place = find_word(query, word, occurrence, meta.language)
        found = opened.neighbours(
            words, word, n, occurrence=occurrence, other_words=other_words, one_per_sentence=one_per_sentence
        )
        n_words, n_sentences = len(opened), len(opened.corpus)
    if as_json:
        near = [
            {"cosine": cosine, "word": other[i], "number": number, "place": i, "sentence": " ".join(other)}
            for cosine, number, other, i in found
        ]
        counts = {"words": n_words, "sentences": n_sentences, "bad_lines": meta.report.n_bad}
        asked = {"word": word, "place": place, "sentence": " ".join(words)}
        print_json({"query": asked, "layer": of, "corpus": counts, "neighbours": near})
        return
    msg.text(f"query: {marked(words, place)}")
    where = "the mean of all layers" if of == MIX else f"layer {of}"
    msg.text(f"compared with {n_words:,} words in {n_sentences:,} sentences, by the cosine of their vectors in {where}")
    if meta.report.n_bad:
        msg.warn(f"{meta.report.n_bad:,} bad lines of the corpus were left out")
    rows = [(f"{cosine:.3f}", number, marked(other, i)) for cosine, number, other, i in found]
    header = ("cosine", "number", "sentence")
    msg.table(rows, header=header, divider=True, aligns=("r", "r", "l"), max_col=WIDEST)


def _layer_of(value: str | None) -> Layer | None:
    """Return the layer of the option --layer: its number, "mix", or None if it was not given."""
    if value is None or value == MIX:
        return value
    try:
        return int(value)
    except ValueError:
        raise CommandError(f"--layer is {shown(value)}. Expected the number of a layer, or {MIX}.") from None


def _open_index(
    corpus: Path,
    folder: Path,
    embedder: ElmoEmbedder,
    lang: str | None,
    layer: Layer | None,
    model: str,
    *,
    replace: bool,
) -> WordIndex:
    """Return the index of a corpus, which is written if it is missing, or if `replace` is true.

    Raises ElmoError if the corpus or the folder can't be used, or if the folder has an index of another corpus, or with
    another language or layer.
    """
    if replace or not is_index(folder):
        build_index(corpus, folder, embedder, lang=lang, layer=layer, model=model, replace=replace, progress=True)
        return WordIndex(folder, embedder)
    index = WordIndex(folder, embedder)
    if not index.is_of(corpus, lang) or layer not in (None, index.header.layer):
        meta = index.corpus.meta
        files = [Path(file.path).name for file in meta.sources]
        named = files[0] if len(files) == 1 else f"{len(files):,} files"
        split = "words separated by blanks" if meta.language is None else f"--lang {meta.language}"
        raise CorpusError(
            f"{folder}: this index is not of {corpus} as it is now, with these settings: it was made of "
            f"{named}, {split}, layer {index.header.layer}. Add --force to make it again, give another "
            f"folder, or search it as it is: give {folder} in place of {corpus}."
        )
    return index
