"""Writes an index of a corpus."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ..allennlp.embedder import ElmoEmbedder
from ..allennlp.progress import BarSetting, bar_of
from ..errors import CorpusError, Errors
from ..formats.atomic import writing
from ..formats.atomic_folder import replacing_folder
from ..formats.streamed.rows import StreamedRows
from ..formats.text.sources import refuse_inside
from ..pretraining.text.prepared_meta import LENGTHS, META, OFFSETS, TEXT
from ..pretraining.text.preparing import prepare
from .header import HEADER, VECTORS, Header, Layer, is_index, write_header
from .unit_vectors import checked_layer, fingerprint, unit_vectors

FILES = (TEXT, OFFSETS, LENGTHS, META, VECTORS, HEADER)


def build_index(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    embedder: ElmoEmbedder,
    *,
    lang: str | None = None,
    layer: Layer | None = None,
    model: str = "",
    replace: bool = False,
    progress: BarSetting = False,
) -> None:
    """Embed all words of a corpus, and write their vectors and the sentences to a folder.

    The folder appears when it is complete. It holds the sentences as `prepare` writes them, vectors.npy (float16,
    *Shape:* (words, width), each of length 1) and index.json. Memory does not grow with the corpus.

    source: a text of one sentence a line, .jsonl or .spacy: a file, a folder or a pattern (see `read_sentences`).
    folder: a new or empty folder, or an index if `replace` is true.
    embedder: computes the vectors.
    lang: of the spaCy tokenizer that splits the text; None: words are separated by blanks.
    layer: number of the layer; "mix": the mean of all layers; None: the last layer.
    model: what the user calls the biLM, for messages.
    replace: whether an index that is in the folder is replaced.
    progress: how the sentences are counted on stderr (see ElmoEmbedder.embed_lines).

    Raises ElmoError if the source, the folder or a setting can't be used.
    """
    target = Path(os.path.realpath(folder))
    _refuse_present(target, replace)
    refuse_inside(source, target)
    layer, bilm = checked_layer(layer, embedder.options.layers), fingerprint(embedder)
    with replacing_folder(target, FILES, CorpusError) as temporary:
        corpus = prepare(source, temporary, lang)
        with (
            writing(target, CorpusError),
            StreamedRows(temporary / VECTORS, np.float16, embedder.options.width) as rows,
            bar_of(len(corpus), progress) as bar,
        ):
            for layers in embedder.embed_sentences(corpus):
                rows.append(unit_vectors(layers, layer))
                bar.update()
        sha256 = corpus.meta.sha256
        del corpus  # Windows renames no folder whose files are mapped
        with writing(target, CorpusError):
            write_header(temporary, Header(bilm, model, layer, embedder.options.width, sha256))


def _refuse_present(folder: Path, replace: bool) -> None:
    """Raise CorpusError if a folder can't become an index."""
    with writing(folder, CorpusError):
        if folder.exists() and not folder.is_dir():
            raise CorpusError(Errors.PATH_FOLDER.format(path=folder))
        present = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    if is_index(folder) and not replace:
        raise CorpusError(Errors.INDEX_EXISTS.format(folder=folder))
    if present and not is_index(folder):
        raise CorpusError(Errors.INDEX_FOREIGN.format(folder=folder, got=", ".join(present[:3])))
