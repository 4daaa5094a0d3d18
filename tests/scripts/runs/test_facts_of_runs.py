"""Facts about a run: weights counted by hand, bytes of files, the biLM."""

import hashlib
from pathlib import Path

import pytest
import spacy
from spacy.util import load_config

from scripts.runs.experiments import TASKS
from scripts.runs.facts_of_runs import bilm_of, megabytes, parameters
from scripts.runs.network_configs import network_config
from spacy_elmo import bilms
from spacy_elmo.tasks.entailment.pairs import make_pair


def test_weights_of_components_but_biLMs() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    tok2vec = {"@architectures": "spacy.HashEmbedCNN.v2", "width": 8, "embed_size": 10, "depth": 1}
    more = {"pretrained_vectors": None, "window_size": 1, "maxout_pieces": 2, "subword_features": False}
    tagger = nlp.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec | more}})
    tagger.add_label("A")
    nlp.initialize()
    embedding = 10 * 8 + (8 * 8 * 3 + 8 * 3 + 2 * 8)  # the table of one attribute; maxout of three pieces
    block = 3 * 8 * 8 * 2 + 8 * 2 + 2 * 8  # maxout of three tokens in two pieces, its bias, the layer norm
    output = 8 * 1 + 1
    assert parameters(nlp) == embedding + block + output


def test_weights_of_torch_are_counted() -> None:
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("entailment")
    doc = make_pair(nlp, "a", "b")
    doc.cats = {"x": 1.0, "y": 0.0}
    nlp.initialize(lambda: [spacy.training.Example(make_pair(nlp, "a", "b"), doc)])
    (shim,) = [shim for node in pipe.model.walk() for shim in node.shims]
    in_torch = sum(weight.numel() for weight in shim.network.parameters())
    in_thinc = sum(node.get_param(name).size for node in pipe.model.walk() for name in node.param_names)
    assert parameters(nlp) == in_torch + in_thinc
    assert min(in_torch, in_thinc) > 1000


def test_size(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b").write_bytes(bytes(250_000))
    (tmp_path / "c").write_bytes(bytes(750_000))
    assert megabytes(tmp_path) == 1.0


USES = {"baseline": False, "elmo": True, "random": False, "vectors": False, "vectors_elmo": True}


@pytest.mark.parametrize(("network", "has"), USES.items(), ids=str)
def test_the_biLM_of_a_config(network: str, has: bool) -> None:
    weights = Path(bilms.paths("en_mini")[1]).read_bytes()
    for task in TASKS:
        config = network_config(Path(__file__).parents[3], task, task.networks[network])
        assert bilm_of(config) == (hashlib.sha256(weights).hexdigest()[:12] if has else "")


def test_a_biLM_by_its_folder_is_not_the_embedded_one() -> None:
    config = load_config(Path(__file__).parents[3] / "configs/ner_elmo.cfg", {"components.elmo.model.bilm": "runs/own"})
    assert bilm_of(config) == ""
