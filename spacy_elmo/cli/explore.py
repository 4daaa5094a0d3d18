"""`elmo explore`: a page with the biLM inside, on which words in context move from layer to layer."""

from __future__ import annotations

import gzip
import html
import json
import struct
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.cli._util import Arg, Opt
from spacy.language import Language
from spacy.tokens import Doc, Token

from ..errors import CommandError
from ..formats.text import Unusable, blank
from ..pipeline.mixes import learned_mixes
from ..pipeline.saved import load_pipe
from .console import msg
from .shared import TEXTS, Force, LangOfCard, bilm_of, check_output, embedder_of, write_text

if TYPE_CHECKING:
    from ..corpus.bilm import BiLMChoice

Floats = npt.NDArray[np.float32]
BATCH = 64  # sentences
MOST_OCCURRENCES = 5000  # of a word: as many points as the page moves smoothly
MOST_WORDS = 20  # that are chosen by their frequency
# The page predicts the most frequent words alone, so that it stays below 12 MB: these are 98 % of what a text has.
PREDICTED_WORDS = 32000


def explore(
    output: Path = Arg(..., metavar="OUTPUT", help="HTML file to write"),
    texts: list[Path] | None = Arg(None, metavar="TEXT", help=f"{TEXTS}; default: sentences with bank, spring ..."),
    words: str = Opt("", metavar="WORD,WORD", help="Words whose occurrences are shown; default: the most frequent"),
    model: str | None = Opt(None, "--model", "-m", metavar="MODEL", help="Folder or name of a biLM; default: en_mini"),
    pipeline: str | None = Opt(
        None, metavar="PIPELINE", help="Saved pipeline: its biLM, its tags and entities, and what it has learnt"
    ),
    predictions: bool = Opt(
        True, "--predictions/--no-predictions", help="Whether the page predicts words, by the softmax"
    ),
    parquet: Path | None = Opt(None, metavar="FILE", help="File for the occurrences, as embedding-atlas opens them"),
    lang: LangOfCard = None,
    force: Force = False,
) -> None:
    """Write a page that shows words in context.

    It is one HTML file with the biLM inside, which reads what one types. It needs a browser, and no network.
    """
    chosen = [word.strip() for word in words.split(",") if word.strip()]
    if words and not chosen:
        raise CommandError(f"--words is {words!r}, which names no word. Expected words with commas between them.")
    check_output(output, texts or (), force=force)
    if parquet is not None:
        if parquet.absolute().resolve() == output.absolute().resolve():
            raise CommandError(f"--parquet is {parquet}, which is OUTPUT too. Expected two files: give another name.")
        check_output(parquet, texts or (), force=force)
    choice = bilm_of(model, pipeline=pipeline)
    nlp = load_pipe(pipeline)[0] if pipeline else blank(lang or choice.language)
    if texts:
        sentences = _read(texts, nlp, choice, lang)
        usual = _frequent(sentences)
    else:
        rows = _sample()
        sentences = [Sentence(doc, {"sense": row[1]}) for row, doc in zip(rows, nlp.pipe(row[2] for row in rows))]
        usual = list(dict.fromkeys(row[0] for row in rows))
    chosen = chosen or usual
    found = _occurrences(sentences, chosen)
    if not found:
        raise CommandError(
            f"--words is {words or 'not given'}, and no word occurs twice. Expected words of the text, as it writes "
            "them: change --words, or give more text."
        )
    if missing := [word for word in chosen if word not in found]:
        msg.warn(f"{', '.join(missing)}: less than twice in the text, so not on the page.")
    vectors = _embed(found, sentences, choice)
    if parquet is not None:
        write_parquet(parquet, found, sentences, vectors)
        msg.good(f"{parquet}: open it with embedding-atlas {parquet} --text sentence --vector vector")
    name = pipeline or model or "en_mini"
    bilm, can_predict = pack_bilm(choice, predictions)
    page = make_page(name, found, sentences, vectors, bilm, can_predict, nlp)
    write_text(page, output)
    n, size = sum(map(len, found.values())), output.stat().st_size
    msg.good(f"{output}: a page of {size / 1e6:.1f} MB. Words: {len(found)}; occurrences of them: {n:,}")
    msg.text("Open it in a browser: double-click the file, or press Ctrl+O there. It needs no network.")
    if predictions and not can_predict:
        msg.warn(f"{name} has no softmax (or an adaptive one), so the page predicts no words: pip install its softmax.")


class Sentence(NamedTuple):
    """A sentence, and what colours its words. values: of the sentence, by the names of the attributes."""

    doc: Doc
    values: dict[str, str]


class Occurrence(NamedTuple):
    """A word in a sentence. sentence: its number. place: index of the word in it."""

    sentence: int
    place: int


def _sample() -> list[list[str]]:
    """Return the package's example sentences: word, sense, sentence."""
    lines = files("spacy_elmo.cli").joinpath("senses.tsv").read_text(encoding="utf8").splitlines()
    return [line.split("\t") for line in lines]


def _read(texts: Sequence[Path], nlp: Language, choice: BiLMChoice, lang: str | None) -> list[Sentence]:
    from ..corpus.reading import Parser, read_items, sources_of

    parser = Parser(choice.tokenizer(lang), docs=False)
    names: list[str] = []
    docs: list[Doc] = []
    for item in read_items(sources_of(texts)):
        try:
            document = parser(item)
        except Unusable as error:
            raise CommandError(f"{item.source}, line {item.line}: {error}. Correct or remove the line.") from error
        for sentence in document.sentences if document is not None else ():
            names.append(Path(item.source).name)
            docs.append(Doc(nlp.vocab, words=sentence.tokens))
    if not docs:
        raise CommandError(f"{', '.join(map(str, texts))}: no sentence. Expected text, one sentence a line.")
    several = len(set(names)) > 1
    return [Sentence(doc, {"document": name} if several else {}) for name, doc in zip(names, nlp.pipe(docs))]


def _frequent(sentences: Sequence[Sentence]) -> list[str]:
    """Return the most frequent words that are no stop words."""
    counts = Counter(token.text for doc, _ in sentences for token in doc if token.is_alpha and not token.is_stop)
    return [word for word, n in counts.most_common(MOST_WORDS) if n > 1]


def _occurrences(sentences: Sequence[Sentence], words: Sequence[str]) -> dict[str, list[Occurrence]]:
    """Return where each word occurs, in upper or lower case. Words that occur once are left out."""
    places: dict[str, list[Occurrence]] = defaultdict(list)
    for number, (doc, _) in enumerate(sentences):
        for token in doc:
            places[token.lower_].append(Occurrence(number, token.i))
    return {word: places[word.lower()][:MOST_OCCURRENCES] for word in words if len(places[word.lower()]) > 1}


def _embed(
    found: dict[str, list[Occurrence]], sentences: Sequence[Sentence], choice: BiLMChoice
) -> dict[Occurrence, Floats]:
    """Return the layers of each occurrence, *Shape:* (layers, width)."""
    wanted: dict[int, list[Occurrence]] = defaultdict(list)
    for occurrence in {o for occurrences in found.values() for o in occurrences}:
        wanted[occurrence.sentence].append(occurrence)
    embedder, numbers, result = embedder_of(choice), sorted(wanted), {}
    for start in range(0, len(numbers), BATCH):
        batch = numbers[start : start + BATCH]
        words = [[token.text for token in sentences[number].doc] for number in batch]
        for number, layers in zip(batch, embedder.embed_batch(words)):
            result.update({o: layers[:, o.place].copy() for o in wanted[number]})
    return result


def _values(sentence: Sentence, token: Token) -> dict[str, str]:
    """Return what an occurrence can be coloured by."""
    values = dict(sentence.values)
    if token.doc.has_annotation("TAG"):
        values["tag"] = token.tag_
    if token.doc.has_annotation("ENT_IOB"):
        values["entity"] = token.ent_type_ or "none"
    if token.doc.cats:
        values["category"] = max(token.doc.cats, key=token.doc.cats.__getitem__)
    return values


def pack_bilm(choice: BiLMChoice, predictions: bool) -> tuple[str, bool]:
    """Return a biLM's weights, and its softmax if there is one, as the page unpacks them: gzip in base64.

    Matrices of few bits become whole numbers of 8 bits with a step for each output, which is exact. Others are rounded
    to 16 bits.

    Returns the text, and whether it has the softmax.
    """
    options, weights = choice.load_arrays()
    packed = [(name, values, name.startswith("lstm.")) for name, values in weights.items()]
    softmax, words = _softmax(choice) if predictions else (None, None)
    if softmax is not None:
        packed += [(f"softmax.{name}", values, False) for name, values in softmax.items()]
    header, data = [], []
    for name, values, lstm in packed:
        few = values.ndim > 1 and name != "char_cnn.embedding.weight"
        whole, steps = _whole(values, (1,) if lstm else tuple(range(1, values.ndim))) if few else (values, np.empty(0))
        stored = {"name": name, "type": str(whole.dtype), "length": whole.size, "outputs": steps.size, "lstm": lstm}
        header.append(stored)
        data += [whole.tobytes(), steps.astype("<f4").tobytes()]
    about = json.dumps({"options": options.to_dict(), "arrays": header, "words": words}).encode()
    blob = len(about).to_bytes(4, "little") + about + b"".join(data)
    return b64encode(gzip.compress(blob, mtime=0)).decode(), softmax is not None


def _whole(values: Floats, inputs: tuple[int, ...]) -> tuple[npt.NDArray[Any], Floats]:
    """Return whole numbers and the step of each output. inputs: the axes of one output's values."""
    largest = np.abs(values).max(axis=inputs, keepdims=True).astype(np.float64)
    for most in (127, 32767):
        steps = np.exp2(np.ceil(np.log2(np.maximum(largest, 1e-30) / most)))
        whole = np.rint(values / steps)
        if np.array_equal(whole * steps, values):
            break
    return whole.astype("<i1" if most == 127 else "<i2"), steps.ravel().astype(np.float32)


def _softmax(choice: BiLMChoice) -> tuple[dict[str, Floats] | None, list[str] | None]:
    """Return the rows of the most frequent words, and these; (None, None) if the biLM has no full softmax."""
    from ..modules.loading import EMBEDDED
    from ..modules.softmax import Softmax
    from ..pretraining.language_model import LanguageModel, has_softmax

    if choice.saved_pipeline is not None or choice.options_file is not None:
        return None, None
    name = choice.model or EMBEDDED
    if not has_softmax(name):
        return None, None
    model = LanguageModel.load(name, untrusted=True)
    if not isinstance(model.softmax, Softmax):
        return None, None
    rows = {name: values[:PREDICTED_WORDS].numpy() for name, values in model.softmax.state_dict().items()}
    return rows, model.words[:PREDICTED_WORDS]


def make_page(
    name: str,
    found: dict[str, list[Occurrence]],
    sentences: Sequence[Sentence],
    vectors: dict[Occurrence, Floats],
    bilm: str,
    predictions: bool,
    nlp: Language,
) -> str:
    """Return the HTML. bilm: what `pack_bilm` returned."""
    numbers = {number: k for k, number in enumerate(sorted({o.sentence for o in vectors}))}
    words: dict[str, list[dict[str, Any]]] = {
        word: [
            {"sentence": numbers[o.sentence], "place": o.place, "values": _values(s, s.doc[o.place]) or {"word": word}}
            for o, s in ((o, sentences[o.sentence]) for o in occurrences)
        ]
        for word, occurrences in found.items()
    }
    start = next(iter(found.values()))[0]
    first = " ".join(token.text for token in sentences[start.sentence].doc)
    layers, width = vectors[start].shape
    attributes = dict.fromkeys(name for group in words.values() for o in group for name in o["values"])
    data = {
        "words": words,
        "sentences": [[token.text for token in sentences[number].doc] for number in numbers],
        "attributes": list(attributes),
        "layers": list(range(layers)),
        "width": width,
        "predictions": predictions,
        "start": start.place,
        "mixes": [mix.to_dict() for mix in learned_mixes(nlp)],
    }
    points = b"".join(_eight_bits(layer) for group in found.values() for o in group for layer in vectors[o])
    parts = {
        "name": html.escape(name),
        "sentence": html.escape(first, quote=True),
        "data": json.dumps(data).replace("<", "\\u003c"),
        "vectors": b64encode(points).decode(),
        "bilm": bilm,
        "script": files("spacy_elmo.cli").joinpath("explore.js").read_text(encoding="utf8"),
    }
    head, *rest = files("spacy_elmo.cli").joinpath("explore.html").read_text(encoding="utf8").split("<!--")
    return head + "".join(parts[part] + after for part, _, after in (piece.partition("-->") for piece in rest))


def _eight_bits(vector: Floats) -> bytes:
    step = max(float(np.abs(vector).max()), 1e-30) / 127
    values: bytes = np.rint(vector / step).astype(np.int8).tobytes()
    return struct.pack("<f", step) + values


def write_parquet(
    path: Path, found: dict[str, list[Occurrence]], sentences: Sequence[Sentence], vectors: dict[Occurrence, Floats]
) -> None:
    """Write a row for each occurrence: word, sentence, what it can be coloured by, and the mean of its layers."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise CommandError("--parquet needs pyarrow: pip install pyarrow.") from error
    rows = [
        {
            "word": word,
            "sentence": " ".join(token.text for token in sentences[o.sentence].doc),
            **_values(sentences[o.sentence], sentences[o.sentence].doc[o.place]),
            "vector": vectors[o].mean(0).tolist(),
        }
        for word, occurrences in found.items()
        for o in occurrences
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
