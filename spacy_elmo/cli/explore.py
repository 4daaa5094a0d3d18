"""`elmo explore`: a page with the biLM inside, on which words in context move from layer to layer."""

from __future__ import annotations

import csv
import gzip
import html
import json
import struct
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from spacy.cli._util import Arg, Opt
from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab

from ..corpus.bilm import BiLMChoice
from ..errors import CommandError
from ..modules.loading import EMBEDDED
from ..pipeline.mixes import LearnedMix, learned_mixes
from ..pipeline.saved import known_bilm, load_pipe
from ..pretraining.language_model import LanguageModel, no_softmax, softmax_folder
from ..text.stream import Document, Fields, Report, read_documents
from ..text.words import blank, line_of
from . import shared
from .console import msg
from .demo import sample_sentences

Floats = npt.NDArray[np.float32]
MOST_OCCURRENCES = 5000  # of a word: as many points as the page moves smoothly
MOST_WORDS = 20  # that are chosen by their frequency
# The page predicts the most frequent words alone, so that it stays small: these are 98 % of what a text has.
PREDICTED_WORDS = 32000
COLOUR_BY = "Column or field of the texts, such as sense; a column or field word tells which word has it"


def explore(
    output: Path = Arg(..., metavar="OUTPUT", help="HTML file to write"),
    texts: list[Path] | None = Arg(None, metavar="TEXT", help=f"{shared.TEXTS}; default: sentences with bank ..."),
    words: str = Opt("", metavar="WORD,WORD", help='Words to show; one with a comma: "25,000"; default: the frequent'),
    model: shared.BiLMName = None,
    pipeline: str | None = Opt(None, metavar="PIPELINE", help="Saved pipeline: its biLM, tags, entities and mixes"),
    predictions: bool = Opt(True, help="Whether the page predicts words, by the softmax"),
    colour_by: str | None = Opt(None, metavar="NAME", help=COLOUR_BY),
    parquet: Path | None = Opt(None, metavar="FILE", help="File for the occurrences, as embedding-atlas opens them"),
    lang: shared.LangOfCard = None,
    text_column: shared.TextColumn = None,
    text_field: shared.TextField = None,
    force: shared.Force = False,
) -> None:
    """It is one HTML file with the biLM inside, which reads what one types. It needs a browser, and no network."""
    chosen = [word.strip() for row in csv.reader([words], skipinitialspace=True) for word in row if word.strip()]
    if words and not chosen:
        raise CommandError(f"--words is {words!r}, which names no word. Expected words with commas between them.")
    if colour_by is not None and not texts:
        raise CommandError(f"--colour-by is {colour_by!r}, but there is no TEXT. Give a table or JSON lines with it.")
    choice = shared.bilm_of(model, pipeline=pipeline)
    for path, begins in ((output, b"<!doctype html"), (parquet, b"PAR1")):
        if path is not None:
            shared.hold(path, [*(texts or ()), *choice.files], force=force, begins=begins)
    nlp = load_pipe(pipeline)[0] if pipeline else blank(lang or choice.language)
    split = (blank(lang) if lang else nlp).tokenizer
    docs: list[Doc] = []
    if texts:
        report, has_it = Report(), colour_by is None
        fields: Fields = {"text_column": text_column or ("text" if colour_by else None), "text_field": text_field}
        for document in read_documents(texts, choice.tokenizer(lang), report, **fields):
            others = json.loads(document.meta or "{}") | ({} if document.id is None else {"id": document.id})
            has_it |= colour_by in others
            docs += _docs_of(document, others, colour_by, nlp.vocab, split)
        if not has_it and docs:
            names = ", ".join(map(repr, others)) or "nothing"
            raise CommandError(f"{document.source}: has {names} beside the text. Expected {colour_by!r} (--colour-by).")
        shared.tell_bad_lines(report)
        if colour_by != "document" and len({doc.user_data[OF_SENTENCE]["document"] for doc in docs}) == 1:
            for doc in docs:
                del doc.user_data[OF_SENTENCE]["document"]
        docs = list(nlp.pipe(docs))
        told = Counter(doc.user_data[OF_WORD] for doc in docs if OF_WORD in doc.user_data)
        chosen = chosen or [word for word, _ in told.most_common(MOST_WORDS)]
        counts = Counter(token.text for doc in docs for token in doc if token.is_alpha and not token.is_stop)
        usual = [word for word, n in counts.most_common(MOST_WORDS) if n > 1]
    else:
        rows = sample_sentences()
        for (_, sense, _), doc in zip(rows, nlp.pipe(row[2] for row in rows)):
            doc.user_data[OF_SENTENCE] = {"sense": sense}
            docs.append(doc)
        usual = list(dict.fromkeys(row[0] for row in rows))
    tokens = _by_form(docs)
    once = {word.lower(): word for word in reversed(chosen or usual)}  # upper and lower case are one word
    spans = {word: _spans(word, tokens, split) for word in reversed(once.values())}
    found = {word: group[:MOST_OCCURRENCES] for word, group in spans.items() if len(group) > 1}
    if not found:
        lacking = f"--words is {words}, and the text has none of these" if words else "no word of the text occurs"
        raise CommandError(f"{lacking} twice. Expected one that does: change --words, or give more text.")
    if missing := [word for word in spans if chosen and word not in found]:
        msg.warn(f"{', '.join(missing)}: less than twice in the text, so not on the page.")
    layers = _embed(found.values(), choice)
    if parquet is not None:
        _write_parquet(parquet, found, layers)
        msg.good(f"{parquet}: open it with embedding-atlas {parquet} --text sentence --vector vector")
    name = pipeline or model or EMBEDDED
    bilm, can_predict = _pack_bilm(choice, predictions)
    shared.write_text(_make_page(name, found, layers, bilm, can_predict, learned_mixes(nlp)), output)
    n, size = sum(map(len, found.values())), output.stat().st_size
    msg.good(f"{output}: a page of {size / 1e6:.1f} MB. Words: {len(found)}; occurrences of them: {n:,}")
    msg.text("Open it in a browser: double-click the file, or press Ctrl+O there. It needs no network.")
    if predictions and not can_predict:
        msg.warn(f"the page predicts no words. {no_softmax(name)}")


# Keys of a doc's user_data: what colours the words of a sentence, by the attributes' names, and the one that has it
OF_SENTENCE, OF_WORD = "of_sentence", "of_word"


def _docs_of(
    document: Document, others: Mapping[str, Any], colour_by: str | None, vocab: Vocab, split: Callable[[str], Doc]
) -> list[Doc]:
    """Return a doc of each sentence, with what its table or JSON object tells beside the text. Raises CommandError."""
    docs = [Doc(vocab, words=sentence) for sentence in document.sentences]
    values = {"document": Path(document.source).name}
    if colour_by is not None:
        values |= {colour_by: str(others.get(colour_by) or "none")}
        if word := str(others.get("word", "")):
            for doc in docs:
                doc.user_data[OF_WORD] = word
            if not _spans(word, _by_form(docs), split):
                text = line_of(token.text for doc in docs for token in doc)
                place = f"{document.source}, line {document.line:,}"
                raise CommandError(f"{place}: its word is {word!r}, which its text does not have: {text}")
    for doc in docs:
        doc.user_data[OF_SENTENCE] = dict(values)
    return docs


def _by_form(docs: Iterable[Doc]) -> dict[str, list[Token]]:
    """Return the tokens of docs by their lower-case forms."""
    tokens: dict[str, list[Token]] = defaultdict(list)
    for doc in docs:
        for token in doc:
            tokens[token.lower_].append(token)
    return tokens


def _spans(word: str, tokens: Mapping[str, Sequence[Token]], split: Callable[[str], Doc]) -> list[Span]:
    """Return where a word stands: as a token, or as the tokens that it is split into, such as "e", "-" and "mail"."""
    found = []
    for parts in dict.fromkeys(((word.lower(),), tuple(token.lower_ for token in split(word)))):
        spans = [token.doc[token.i : token.i + len(parts)] for token in tokens.get(parts[0], ())]
        found += [span for span in spans if tuple(token.lower_ for token in span) == parts]
    return [span for span in found if span.doc.user_data.get(OF_WORD, word).lower() == word.lower()]


def _embed(groups: Iterable[Sequence[Span]], choice: BiLMChoice) -> dict[Span, Floats]:
    """Return the layers of each occurrence, *Shape:* (layers, width): the mean over its tokens."""
    wanted: dict[Doc, list[Span]] = defaultdict(list)
    for span in dict.fromkeys(span for spans in groups for span in spans):
        wanted[span.doc].append(span)
    embedded = shared.embedded(choice.load(), ([token.text for token in doc] for doc in wanted))
    return {s: layers[:, s.start : s.end].mean(1) for spans, layers in zip(wanted.values(), embedded) for s in spans}


def _values(span: Span) -> dict[str, str]:
    """Return what an occurrence can be coloured by."""
    doc, values = span.doc, dict[str, str]()
    own: dict[str, str] = doc.user_data.get(OF_SENTENCE, {})
    if doc.has_annotation("TAG"):
        values["tag"] = " ".join(token.tag_ for token in span)
    if doc.has_annotation("ENT_IOB"):
        values["entity"] = span[0].ent_type_ or "none"
    if doc.cats:
        values["category"] = max(doc.cats, key=doc.cats.__getitem__)
    return {**own, **values, **own}  # in this order; one's own column may be called tag


def _pack_bilm(choice: BiLMChoice, predictions: bool) -> tuple[str, bool]:
    """Return a biLM's weights and its softmax for the page, gzip in base64, and whether it has the latter."""
    options, weights = choice.load_arrays()
    words = None
    name = choice.model or EMBEDDED if choice.saved_pipeline is None else known_bilm(options, weights)
    if predictions and name is not None and softmax_folder(name) is not None:
        model = LanguageModel.load(name)
        words = model.words[:PREDICTED_WORDS]
        rows = {name: values[:PREDICTED_WORDS].numpy() for name, values in model.softmax.state_dict().items()}
        weights |= {f"softmax.{name}": values for name, values in rows.items()}
    header, data = [], []
    for name, values in weights.items():
        lstm = name.startswith("lstm.")
        few = values.ndim > 1 and name != "char_cnn.embedding.weight"
        whole, steps = _whole(values, (1,) if lstm else tuple(range(1, values.ndim))) if few else (values, np.empty(0))
        stored = {"name": name, "type": str(whole.dtype), "length": whole.size, "outputs": steps.size, "lstm": lstm}
        header.append(stored)
        data += [whole.tobytes(), steps.astype("<f4").tobytes()]
    about = json.dumps({"options": options.to_dict(), "arrays": header, "words": words}).encode()
    blob = len(about).to_bytes(4, "little") + about + b"".join(data)
    return b64encode(gzip.compress(blob, mtime=0)).decode(), words is not None


def _whole(values: Floats, inputs: tuple[int, ...]) -> tuple[npt.NDArray[Any], Floats]:
    """Return whole numbers of 8 bits where they are exact, else of 16, and the step of each output."""
    largest = np.abs(values).max(axis=inputs, keepdims=True).astype(np.float64)
    for most in (127, 32767):
        steps = np.exp2(np.ceil(np.log2(np.maximum(largest, 1e-30) / most)))
        whole = np.rint(values / steps)
        if np.array_equal(whole * steps, values):
            break
    return whole.astype("<i1" if most == 127 else "<i2"), steps.ravel().astype(np.float32)


def _make_page(
    name: str,
    found: Mapping[str, Sequence[Span]],
    layers: Mapping[Span, Floats],
    bilm: str,
    predictions: bool,
    mixes: Sequence[LearnedMix],
) -> str:
    """Return the HTML. bilm: what `_pack_bilm` returned."""
    sentences = {doc: number for number, doc in enumerate(dict.fromkeys(span.doc for span in layers))}
    # pairs, since an object of JavaScript would put words like "2008" first, and has "constructor" already
    words: list[tuple[str, list[dict[str, Any]]]] = []
    for word, spans in found.items():
        places = [{"sentence": sentences[span.doc], "place": span.start, "length": len(span)} for span in spans]
        words.append((word, [place | {"values": _values(s) or {"word": word}} for place, s in zip(places, spans)]))
    start = next(iter(layers))  # in the first sentence
    n_layers, width = layers[start].shape
    data: dict[str, Any] = {"words": words, "sentences": [[token.text for token in doc] for doc in sentences]}
    data["attributes"] = list(dict.fromkeys(name for _, group in words for one in group for name in one["values"]))
    data |= {"layers": list(range(n_layers)), "width": width, "predictions": predictions, "start": start.start}
    data["mixes"] = [mix.to_dict() for mix in mixes]
    points = b"".join(_eight_bits(layer) for spans in found.values() for span in spans for layer in layers[span])
    parts = {"name": html.escape(name), "bilm": bilm, "vectors": b64encode(points).decode()}
    parts["sentence"] = html.escape(" ".join(token.text for token in start.doc), quote=True)
    parts["data"] = json.dumps(data).replace("<", "\\u003c")
    parts["script"] = files("spacy_elmo.cli").joinpath("explore.js").read_text(encoding="utf8")
    head, *rest = files("spacy_elmo.cli").joinpath("explore.html").read_text(encoding="utf8").split("<!--")
    return head + "".join(parts[part] + after for part, _, after in (piece.partition("-->") for piece in rest))


def _eight_bits(vector: Floats) -> bytes:
    step = max(float(np.abs(vector).max()), 1e-30) / 127
    values: bytes = np.rint(vector / step).astype(np.int8).tobytes()
    return struct.pack("<f", step) + values


def _write_parquet(path: Path, found: Mapping[str, Sequence[Span]], layers: Mapping[Span, Floats]) -> None:
    """Write a row for each occurrence: word, sentence, what it can be coloured by, and the mean of its layers."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise CommandError("--parquet needs pyarrow: pip install pyarrow.") from error
    rows: list[dict[str, Any]] = []
    for word, spans in found.items():
        for span in spans:
            sentence, vector = " ".join(token.text for token in span.doc), layers[span].mean(0).tolist()
            rows.append({"word": word, "sentence": sentence, **_values(span), "vector": vector})
    with shared.written(path) as temporary, temporary.open("wb") as file:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
