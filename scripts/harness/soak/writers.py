"""What is killed: for each kind of file a function that sets up a folder, one that writes, and one that reads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import spacy
import torch
from spacy.language import Language

from spacy_elmo.allennlp.embedder import ElmoEmbedder
from spacy_elmo.cli.download import fetch
from spacy_elmo.errors import ElmoError
from spacy_elmo.formats import BiLMOptions, read_options, read_vectors, read_weights, write_options, write_weights
from spacy_elmo.formats.atomic import is_unfinished
from spacy_elmo.inference.cache import LayersFile
from spacy_elmo.models.shim import bilm_shims
from spacy_elmo.modules import BiLM
from spacy_elmo.pipeline.elmo import ElmoPipe
from spacy_elmo.pretraining.pack import pack
from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare

from .digests import digest_of
from .pretraining import train, train_without_kills, trained
from .served import SERVED, url

_OPTIONS = BiLMOptions(4, ((1, 8), (2, 16)), 1, "relu", 20, 128, 64, 2, 3.0, 3.0, True)
_SENTENCES = [["word"] * (1 + n % 7) for n in range(300)]


def _write_bilm(folder: Path, seed: int) -> None:
    bilm = BiLM(_OPTIONS)
    bilm.reset_parameters(torch.Generator().manual_seed(seed))
    folder.mkdir(parents=True, exist_ok=True)
    write_weights(folder / "weights.hdf5", _OPTIONS, bilm.to_arrays())
    write_options(folder / "options.json", _OPTIONS)


def _which(value: str, old: str, new: str) -> str:
    assert value in (old, new), "neither the old files nor the new ones"
    return "old" if value == old else "new"


def _nothing(folder: Path) -> None:
    _write_bilm(folder / "bilm", 1)


def _embed(folder: Path) -> None:
    embedder = ElmoEmbedder(str(folder / "bilm/options.json"), str(folder / "bilm/weights.hdf5"))
    with (folder / "text.txt").open("w", encoding="utf8") as file:
        file.writelines(" ".join(words) + "\n" for words in _SENTENCES)
    with (folder / "text.txt").open(encoding="utf8") as file:
        embedder.embed_file(file, str(folder / "vectors.hdf5"), output_format="average")


def _read_vectors(folder: Path) -> str:
    if not (folder / "vectors.hdf5").exists():
        return "nothing"
    shapes = [array.shape for _, array in read_vectors(folder / "vectors.hdf5")]
    assert shapes == [(len(words), 128) for words in _SENTENCES]
    return "new"


def _two_bilms(folder: Path) -> None:
    _write_bilm(folder / "old", 0)
    _write_bilm(folder / "bilm", 1)
    pack(folder / "old", folder / "packed")


def _pack(folder: Path) -> None:
    pack(folder / "bilm", folder / "packed", force=True)


def _read_packed(folder: Path) -> str:
    if is_unfinished(folder / "packed"):  # evaluate, pretrain and pack refuse it
        return "refused"
    got = read_weights(folder / "packed/weights.hdf5", read_options(folder / "packed/options.json"))
    names = {}
    for name in ("old", "bilm"):
        pack(folder / name, folder / f"expected-{name}", force=True)
        names[name] = read_weights(folder / f"expected-{name}/weights.hdf5", _OPTIONS)
    return _which(digest_of(got), digest_of(names["old"]), digest_of(names["bilm"]))


def _old_file(folder: Path) -> None:
    url()  # the server starts in the parent process
    (folder / "file.bin").write_bytes(b"old")


def _download(folder: Path) -> None:
    fetch(url(), folder / "file.bin", hashlib.sha256(SERVED).hexdigest())


def _read_download(folder: Path) -> str:
    got = hashlib.sha256((folder / "file.bin").read_bytes()).hexdigest()
    return _which(got, hashlib.sha256(b"old").hexdigest(), hashlib.sha256(SERVED).hexdigest())


@cache
def _pipeline(seed: int, folder: Path) -> Language:
    _write_bilm(folder / f"seed-{seed}", seed)
    nlp = spacy.blank("en")
    names = {"options_file": "options.json", "weight_file": "weights.hdf5"}
    model = {key: str(folder / f"seed-{seed}" / name) for key, name in names.items()}
    nlp.add_pipe("elmo", config={"model": model})
    return nlp


def _saved(folder: Path) -> None:
    _pipeline(0, folder).to_disk(folder / "saved")
    _pipeline(1, folder)


def _save(folder: Path) -> None:
    _pipeline(1, folder.parent / "first").to_disk(folder / "saved")


def _read_pipeline(folder: Path) -> str:
    try:
        nlp = spacy.load(folder / "saved")
    except Exception as error:  # spaCy's own files raise what spaCy and numpy raise
        return type(error).__name__
    first = folder.parent / "first"
    return _which(*(digest_of(_arrays(one)) for one in (nlp, _pipeline(0, first), _pipeline(1, first))))


def _arrays(nlp: Language) -> dict[str, np.ndarray]:
    pipe = nlp.get_pipe("elmo")
    assert isinstance(pipe, ElmoPipe)
    return bilm_shims(pipe.model)[0].to_arrays()


_LAYERS = {bytes([n]) * 32: np.full((3, 200, 64), n, np.float32) for n in range(60)}


def _cache(folder: Path) -> None:
    file = LayersFile(folder / "cache")
    for key, layers in _LAYERS.items():
        file.write({key: layers})


def _read_cache(folder: Path) -> str:
    found = LayersFile(folder / "cache").read(list(_LAYERS))
    for key, layers in found.items():
        assert np.array_equal(layers, _LAYERS[key]), "other layers"
    return "new" if len(found) == len(_LAYERS) else "some" if found else "nothing"


def _texts(folder: Path) -> None:
    for name in ("old", "new"):
        (folder / f"{name}.txt").write_text(f"a {name} sentence .\n" * 3000, encoding="utf8")
    prepare(folder / "old.txt", folder / "prepared")


def _prepare(folder: Path) -> None:
    prepare(folder / "new.txt", folder / "prepared")


def _read_prepared(folder: Path) -> str:
    try:
        corpus = PreparedCorpus.open(folder / "prepared")
        corpus.verify()
    except ElmoError as error:
        return type(error).__name__
    words = {tuple(sentence) for sentence in corpus}
    assert len(words) == 1
    assert len(corpus) == 3000
    return _which(words.pop()[1], "old", "new")


# prepare a folder, write into it, and say what it holds
WRITERS: dict[str, tuple[Callable[[Path], None], Callable[[Path], None], Callable[[Path], str]]] = {
    "embed": (_nothing, _embed, _read_vectors),
    "pack": (_two_bilms, _pack, _read_packed),
    "download": (_old_file, _download, _read_download),
    "to_disk": (_saved, _save, _read_pipeline),
    "layer cache": (lambda folder: None, _cache, _read_cache),
    "prepared text": (_texts, _prepare, _read_prepared),
    "pretrain": (train_without_kills, train, trained),
}
