"""`elmo neighbours`: the words of a corpus nearest to a word in a sentence of one's own, or its nearest sentences."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import shorten
from typing import Any

import typer
from spacy.cli._util import Arg, Opt

from ..allennlp.embedder import ElmoEmbedder
from ..analysis.neighbours import MIX, SentenceIndex, WordIndex, build_index, find_word, is_index, read_header
from ..errors import CommandError, CorpusError
from ..modules.loading import EMBEDDED
from ..text.files import TextFile
from ..text.stream import Fields
from . import shared
from .console import WIDEST, msg, print_json
from .similar import marked


def neighbours(
    corpus: Path = Arg(..., metavar="CORPUS", help=f"{shared.TEXTS}; or the folder of an index"),
    query: str = Opt(..., "--query", "-q", metavar="TEXT", help="A sentence of your own"),
    word: str | None = Opt(None, "--word", "-w", metavar="WORD", help="The word in it, exactly as it is written there"),
    sentences: bool = Opt(False, "--sentences", help="Find the nearest sentences, without a word"),
    normalize: bool = Opt(True, help="Sentences: compare by the cosine, or else by the dot product"),
    center: bool = Opt(True, help="Sentences: subtract the mean vector of the corpus first"),
    occurrence: int = Opt(1, min=1, metavar="N", help="Which one, if the word occurs several times in the query"),
    index: Path | None = Opt(None, "--index", "-i", metavar="FOLDER", file_okay=False, help="An index to keep"),
    n: int = Opt(10, "--n", "-n", min=1, metavar="N", help="Neighbours shown"),
    other_words: bool = Opt(False, "--other-words", help="Leave out the same word"),
    one_per_sentence: bool = Opt(False, "--one-per-sentence", help="Show one neighbour of each sentence"),
    model: shared.Model = EMBEDDED,
    pipe: shared.PipeName = None,
    code: shared.Code = None,
    lang: shared.LangOfCard = None,
    tokenized: shared.Tokenized = False,
    text_column: shared.TextColumn = None,
    text_field: shared.TextField = None,
    layer: str | None = Opt(None, metavar="LAYER", help="Layer, or mix: the mean; default: the last; of sentences mix"),
    gpu_id: shared.GpuId = -1,
    force: shared.Force = False,
    as_json: shared.Json = False,
) -> None:
    """Your word is in a sentence of your own: --query and --word. With --sentences, it finds the nearest sentences to
    --query. The vectors of the corpus are written to an index once, with --index. Later queries read it.
    """
    choice = shared.bilm_of(model, pipe, code)
    if word is None and is_index(corpus):
        sentences = sentences or read_header(corpus).of == SentenceIndex.of
    of_words = {"--word": word is not None, "--occurrence": occurrence > 1}
    of_words |= {"--other-words": other_words, "--one-per-sentence": one_per_sentence}
    of_sentences = {"--no-normalize": not normalize, "--no-center": not center}
    _refuse(of_words if sentences else of_sentences, f"given {'with' if sentences else 'without'} --sentences")
    if word is None and not sentences:
        raise typer.BadParameter("--word is missing. Expected the word in the query, or --sentences.")
    chosen: Any = int(layer) if layer is not None and layer.isdecimal() else layer  # another text is refused
    fields: Fields = {"text_column": text_column, "text_field": text_field}
    embedder = ElmoEmbedder.from_arrays(*choice.load_arrays(), gpu_id, language=choice.language)
    kind = SentenceIndex if sentences else WordIndex
    with TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        if is_index(corpus):
            given = {"--index": index, "--lang": lang, "--tokenized": tokenized, "--text-column": text_column}
            given |= {"--text-field": text_field, "--layer": layer, "--force": force}
            _refuse(given, f"given, but {corpus} is an index, which has its own")
            opened: WordIndex | SentenceIndex = kind(corpus, embedder)
        else:
            split = shared.language_of(choice, lang, tokenized)
            folder = index or Path(scratch, "index")
            if is_new := force or not is_index(folder):
                if word is not None:
                    find_word(query, word, occurrence, split)  # before all words of the corpus are embedded
                write = partial(build_index, corpus, folder, embedder, lang=split, layer=chosen, model=model, **fields)
                write(replace=force, sentences=sentences, progress=True)
            opened = kind(folder, embedder)
            asked_for = split if lang is not None or tokenized else "auto"
            if not (is_new or (opened.is_of(corpus, asked_for, **fields) and chosen in (None, opened.header.layer))):
                made = opened.corpus.meta.language
                raise CorpusError(
                    f"{folder}: this index is not of {TextFile(corpus, True).name} as it is now, with these settings: "
                    f"it has {'--tokenized' if made is None else f'--lang {made}'}, layer {opened.header.layer}. Add "
                    "--force to make it again, or give another folder."
                )
        meta, of = opened.corpus.meta, opened.header.layer
        score, how_near = "cosine", "cosine of their vectors"
        if isinstance(opened, SentenceIndex):
            asked: dict[str, object] = {"sentence": query}
            title = shorten(query, WIDEST, placeholder=" ...")
            nearest = opened.neighbours(query, n, normalize=normalize, center=center)
            near = [{"score": value, "number": k, "sentence": " ".join(other)} for value, k, other in nearest]
            score = "cosine" if normalize else "dot product"
            how_near = f"{score} of their vectors" + ", from which the mean of the corpus is subtracted," * center
            rows = [(f"{v:.3f}", k, shorten(" ".join(other), 90, placeholder=" ...")) for v, k, other in nearest]
        else:
            assert word is not None  # as was checked
            words, place = find_word(query, word, occurrence, meta.language)
            found = opened.neighbours(
                words, word, n, occurrence=occurrence, other_words=other_words, one_per_sentence=one_per_sentence
            )
            near = [
                {"cosine": cosine, "word": other[i], "number": number, "place": i, "sentence": " ".join(other)}
                for cosine, number, other, i in found
            ]
            asked = {"word": word, "place": place, "sentence": " ".join(words)}
            title = marked(words, place)
            rows = [(f"{cosine:.3f}", number, marked(other, i)) for cosine, number, other, i in found]
        n_words, n_sentences = int(opened.corpus.n_tokens), len(opened.corpus)
    if as_json:
        counts = {"words": n_words, "sentences": n_sentences, "bad_lines": meta.report.n_bad}
        print_json({"query": asked, "layer": of, "corpus": counts, "neighbours": near})
        return
    msg.text(f"query: {title}")
    where = "the mean of all layers" if of == MIX else f"layer {of}"
    others = f"{n_sentences:,} sentences" if sentences else f"{n_words:,} words in {n_sentences:,} sentences"
    msg.text(f"compared with {others}, by the {how_near} in {where}")
    shared.tell_bad_lines(meta.report)
    msg.table(rows, header=(score, "number", "sentence"), aligns="rrl")


def _refuse(options: Mapping[str, object], why: str) -> None:
    for option in [option for option, value in options.items() if value]:
        raise CommandError(f"{option} was {why}. Leave out {option}.")
