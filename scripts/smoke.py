"""A smoke of everything in an environment that has the package, without the project's folder. check_dist.py calls this.

    python -I scripts/smoke.py FOLDER [BILM ...]

FOLDER: where files may be written. BILM: installed biLMs beside en_core. It prints one line of JSON: the steps
that passed, and some values of vectors. A step that fails ends it with Python's traceback.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import spacy
from spacy.cli._util import app
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.util import registry
from typer.main import get_command

from spacy_elmo import Elmo, ElmoEmbedder, batch_to_ids, encode

SENTENCES = ["I sat on the river bank .", "The bank lends money .", "A dog barks .", "She sells sea shells ."] * 10
TAGS = {"I": "P", "She": "P", "The": "D", "the": "D", "A": "D", ".": "."}


def command(*arguments: str) -> None:
    """Run one of `python -m spacy`'s commands. Raises an error if it does not succeed."""
    code = get_command(app)(arguments, standalone_mode=False)
    assert not code, f"{arguments}: exit code {code}"


def tagged(nlp: Language, path: str) -> None:
    docs = [Doc(nlp.vocab, line.split(), tags=[TAGS.get(word, "X") for word in line.split()]) for line in SENTENCES]
    DocBin(docs=docs).to_disk(path)


def vectors(found: dict[str, list[float]]) -> Iterator[str]:
    """Yield the name of each step that passed."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    doc = nlp(SENTENCES[0])
    found["en_core"] = [float(value) for value in doc[5]._.elmo[:4]]
    assert doc[5]._.elmo.shape == (512,)
    assert np.isfinite(doc._.elmo).all()
    yield "vectors"
    nlp.to_disk("saved")
    np.testing.assert_array_equal(spacy.load("saved")(SENTENCES[0])._.elmo, doc._.elmo)
    yield "save and load"
    assert encode(nlp, SENTENCES[:2]).shape == (2, 512)
    yield "encode"
    words = [line.split() for line in SENTENCES[:2]]
    layers = ElmoEmbedder().embed_sentence(words[0])
    found["layers"] = [float(layer[5, 0]) for layer in layers]
    yield "ElmoEmbedder"
    assert Elmo(None, None, 1, dropout=0.0)(batch_to_ids(words))["elmo_representations"][0].shape == (2, 7, 512)
    yield "Elmo"


def commands() -> Iterator[str]:
    """Yield the name of each command that ended well, and wrote what it should."""
    Path("text.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf8")
    tagged(spacy.blank("en"), "tags.spacy")
    command("elmo", "init-config", "tagger.cfg", "--pipeline", "tagger")
    paths = ("--paths.train", "tags.spacy", "--paths.dev", "tags.spacy")
    short = ("--training.max_steps", "20", "--training.eval_frequency", "20")
    command("train", "tagger.cfg", "--output", "tagger", *paths, *short)
    doc = spacy.load("tagger/model-last")(SENTENCES[1])
    assert [doc[0].tag_, doc[4].tag_] == ["D", "."]
    yield "a tagger trained"
    for file, more in {"vectors.hdf5": [], "vectors.npy": ["--sentence"], "docs.spacy": []}.items():
        command("elmo", "embed", "text.txt", file, *more)
        assert Path(file).stat().st_size > 10_000
    yield "embed"
    command("elmo", "neighbours", "text.txt", "--query", SENTENCES[0], "--word", "bank")
    yield "neighbours"
    command("elmo", "explore", "page.html")
    assert Path("page.html").stat().st_size > 1_000_000
    yield "explore"
    size = ("--size", "tiny", "--train", "text.txt")
    command("elmo", "init-pretrain-config", "pretrain.cfg", *size)
    command("elmo", "pretrain", "pretrain.cfg", "run")
    command("elmo", "evaluate", "run", "text.txt")
    yield "pretrain"
    command("elmo", "info", "en_core", "run", "saved", "vectors.hdf5")
    yield "info"


def with_softmax(name: str, found: dict[str, list[float]]) -> Iterator[str]:
    """Yield what an installed biLM, or the softmax of en_core, can do."""
    if name != "en_core":
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"model": {"bilm": name}})
        found[name] = [float(value) for value in nlp(SENTENCES[0])[5]._.elmo[:4]]
    command("elmo", "evaluate", name, "text.txt")
    command("elmo", "predict", "The ___ of the river", "--model", name)
    yield name


def main() -> None:
    os.chdir(sys.argv[1])
    registry.cli.get_all()  # adds the commands of entry points, as `python -m spacy` does
    found: dict[str, list[float]] = {}
    passed: list[str] = []
    for step in vectors(found):
        passed.append(step)
    for step in commands():
        passed.append(step)
    for name in sys.argv[2:]:
        passed.extend(with_softmax(name, found))
    print(json.dumps({"passed": passed, "vectors": found}))


if __name__ == "__main__":
    main()
