"""`elmo neighbours`: the words of a corpus that are nearest to a word in a sentence of one's own."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from spacy.cli._util import import_code

from ..allennlp.embedder import ElmoEmbedder
from ..analysis.neighbours import MIX, Layer, Neighbour, WordIndex, build_index, find_word, is_index
from ..corpus.reading import standard_input
from ..errors import CommandError, CorpusError, shown
from ..formats.atomic import writing
from ..modules.loading import EMBEDDED
from .console import escaped, msg, print_json, printing_errors, show_all
from .occurrences import marked
from .shared import STANDARD_INPUT, Code, Json, Model, PipeName, bilm_of, embedder_of, folder_argument, source_of

CONTEXT = {"allow_extra_args": True}  # which are refused by a message
WIDEST = 120  # characters of a column


def layer_of(value: str | None) -> Layer | None:
    """Return the layer of the option --layer: its number, "mix", or None if it was not given."""
    if value is None or value == MIX:
        return value
    try:
        return int(value)
    except ValueError:
        raise CommandError(f"--layer is {shown(value)}. Expected the number of a layer, or {MIX}.") from None


def open_index(
    corpus: Path,
    folder: Path,
    embedder: ElmoEmbedder,
    lang: str | None,
    layer: Layer | None,
    model: str,
    *,
    replace: bool,
) -> WordIndex:
    """Return the index of a corpus. It is written if it is missing.

    corpus: a text as `build_index` reads it, or "-".
    folder: of the index.
    embedder, lang, layer, model: as for `build_index`.
    replace: whether an index that is in the folder is made again.

    Raises ElmoError if the corpus or the folder can't be used, or if the folder has an index of another corpus, or with
    another language or layer.
    """
    with TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        source = corpus
        if corpus == STANDARD_INPUT:
            source = Path(scratch, "standard-input.txt")
            with writing(source, CommandError), source.open("wb") as file:
                shutil.copyfileobj(standard_input(), file)
        if is_index(folder) and not replace:
            index = WordIndex(folder, embedder)
            if not index.is_of(source, lang) or layer not in (None, index.header.layer):
                raise CorpusError(
                    f"{folder}: this index is not of {corpus} as it is now, with these settings: it was made of "
                    f"{made_of(index)}. Add --force to make it again, give another folder, or search it as it is: "
                    f"give {folder} in place of {corpus}."
                )
            return index
        try:
            build_index(source, folder, embedder, lang=lang, layer=layer, model=model, replace=replace, progress=True)
        except CorpusError as error:
            raise CorpusError(str(error).replace(str(source), source_of(corpus))) from error
    return WordIndex(folder, embedder)


def made_of(index: WordIndex) -> str:
    """Return what an index was made of, for messages."""
    meta = index.corpus.meta
    files = [Path(file.path).name for file in meta.sources]
    named = files[0] if len(files) == 1 else f"{len(files):,} files"
    split = "words separated by blanks" if meta.language is None else f"--lang {meta.language}"
    return f"{named}, {split}, layer {index.header.layer}"


def as_dict(index: WordIndex, words: list[str], place: int, neighbours: list[Neighbour]) -> dict[str, object]:
    """Return the result as a dict that can be written as JSON."""
    return {
        "query": {"word": words[place], "place": place, "sentence": " ".join(words)},
        "layer": index.header.layer,
        "corpus": {"words": len(index), "sentences": len(index.corpus), "bad_lines": index.corpus.meta.report.n_bad},
        "neighbours": [
            {"cosine": cosine, "word": other[i], "number": number, "place": i, "sentence": " ".join(other)}
            for cosine, number, other, i in neighbours
        ],
    }


def show(index: WordIndex, words: list[str], place: int, neighbours: list[Neighbour]) -> None:
    """Print the neighbours as a table."""
    msg.text(f"query: {marked(words, place)}")
    layer = "the mean of all layers" if index.header.layer == MIX else f"layer {index.header.layer}"
    n, sentences = len(index), len(index.corpus)
    msg.text(f"compared with {n:,} words in {sentences:,} sentences, by the cosine of their vectors in {layer}")
    if index.corpus.meta.report.n_bad:
        msg.warn(escaped(f"{index.corpus.meta.report.n_bad:,} bad lines of the corpus were left out"))
    rows = [(f"{cosine:.3f}", number, escaped(marked(other, i))) for cosine, number, other, i in neighbours]
    header = ("cosine", "number", "sentence")
    msg.table(rows, header=header, divider=True, aligns=("r", "r", "l"), max_col=WIDEST)


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
    gpu_id: Annotated[
        int, typer.Option("--gpu-id", "-g", min=-1, metavar="N", help="Number of the GPU; -1: the CPU")
    ] = -1,
    force: Annotated[bool, typer.Option("--force", "-F", help="Make the index again if it exists")] = False,
    as_json: Json = False,
) -> None:
    """Find the words of a corpus nearest to one of yours.

    Your word is in a sentence of your own: --query and --word.
    The vectors of all words of the corpus are written to an index once, with --index. Later queries read it.
    """
    show_all()
    import_code(code)
    with printing_errors(), TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        if context.args:  # `similar` has the model as an argument
            raise CommandError(
                f"{corpus} and {context.args[0]}: two arguments. Expected one, the corpus or an index, since the "
                f"model is an option: python -m spacy elmo neighbours {context.args[0]} --model {corpus} --query "
                "TEXT --word WORD."
            )
        embedder = embedder_of(bilm_of(model, None, None, None, pipe, "cpu", "float32"), gpu_id)
        if is_index(corpus):
            settings = {"--index": index, "--lang": lang, "--layer": layer, "--force": force or None}
            for option in [name for name, value in settings.items() if value is not None]:
                raise CommandError(
                    f"{option} was given, but {corpus} is an index, which has its own. Leave out {option}."
                )
            opened = WordIndex(corpus, embedder)
        else:
            find_word(query, word, occurrence, lang)  # before all words of the corpus are embedded
            folder = Path(scratch, "index") if index is None else index
            opened = open_index(corpus, folder, embedder, lang, layer_of(layer), model, replace=force)
        words, place = find_word(query, word, occurrence, opened.corpus.meta.language)
        found = opened.neighbours(
            words, word, n, occurrence=occurrence, other_words=other_words, one_per_sentence=one_per_sentence
        )
        if as_json:
            print_json(as_dict(opened, words, place, found))
        else:
            show(opened, words, place, found)
