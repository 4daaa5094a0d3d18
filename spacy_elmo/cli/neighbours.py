"""`elmo neighbours`: the words of a corpus that are nearest to a word in a sentence of one's own."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from spacy.cli._util import Arg, Opt, import_code

from ..allennlp.embedder import ElmoEmbedder
from ..analysis.neighbours import MIX, Layer, WordIndex, build_index, find_word, is_index
from ..errors import CommandError, CorpusError, shown
from ..formats.atomic import writing
from ..modules.loading import EMBEDDED
from .console import msg, print_json
from .shared import (
    STANDARD_INPUT,
    TEXTS,
    WIDEST,
    Code,
    Force,
    GpuId,
    Json,
    Lang,
    Model,
    PipeName,
    bilm_of,
    embedder_of,
    source_of,
)
from .similar import marked


def neighbours(
    corpus: Path = Arg(..., metavar="CORPUS", help=f"{TEXTS}; or the folder of an index"),
    query: str = Opt(..., "--query", "-q", metavar="TEXT", help="A sentence of your own"),
    word: str = Opt(..., "--word", "-w", metavar="WORD", help="The word in it, exactly as it is written there"),
    occurrence: int = Opt(1, min=1, metavar="N", help="Which one, if the word occurs several times in the query"),
    index: Path | None = Opt(
        None,
        "--index",
        "-i",
        metavar="FOLDER",
        file_okay=False,
        help="Folder of the index, which is written if it is missing",
    ),
    n: int = Opt(10, "--n", "-n", min=1, metavar="N", help="Neighbours shown"),
    other_words: bool = Opt(False, "--other-words", help="Leave out the same word"),
    one_per_sentence: bool = Opt(False, "--one-per-sentence", help="Show one neighbour of each sentence"),
    model: Model = EMBEDDED,
    pipe: PipeName = None,
    code: Code = None,
    lang: Lang = None,
    layer: str | None = Opt(None, metavar="LAYER", help="Layer, or mix: the mean of all; default: the last one"),
    gpu_id: GpuId = -1,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find the words of a corpus nearest to one of yours.

    Your word is in a sentence of your own: --query and --word.
    The vectors of all words of the corpus are written to an index once, with --index. Later queries read it.
    """
    import_code(code)
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
    try:
        return value if value is None or value == MIX else int(value)
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
    """Return the index of a corpus, which is written if it is missing, or if `replace` is true."""
    if replace or not is_index(folder):
        build_index(corpus, folder, embedder, lang=lang, layer=layer, model=model, replace=replace, progress=True)
        return WordIndex(folder, embedder)
    index = WordIndex(folder, embedder)
    if not index.is_of(corpus, lang) or layer not in (None, index.header.layer):
        meta = index.corpus.meta
        raise CorpusError(
            f"{folder}: this index is not of {corpus} as it is now, with these settings: it has --lang "
            f"{meta.language}, layer {index.header.layer}. Add --force to make it again, or give another folder."
        )
    return index
