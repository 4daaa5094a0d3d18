"""A biLM that is not frozen learns through its listeners: one backward pass, in the same step."""

import copy
import gc
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from pipelines import files
from spacy.tokens import Doc
from spacy.training import Example
from tasks import add_task, elmo_block, examples, tok2vec, train, with_tasks
from thinc.api import SGD, Adam, fix_random_seed

from spacy_elmo.errors import ChangedBiLMWarning, ElmoError, NotEmbeddedError, SettingsError
from spacy_elmo.formats import batch_to_ids_array
from spacy_elmo.models.shim import BiLMShim
from spacy_elmo.modules import load_bilm
from spacy_elmo.modules.scalar_mix import ScalarMix


def shim_of(nlp: Any, name: str = "elmo") -> BiLMShim:
    shim = nlp.get_pipe(name).model.shims[0]
    assert isinstance(shim, BiLMShim)
    return shim


def gradients(nlp: Any) -> dict[str, Any]:
    """Of the biLM; what is still held back is computed first."""
    return {name: p.grad.numpy().copy() for name, p in shim_of(nlp).unfreeze().named_parameters() if p.grad is not None}


def weights(nlp: Any) -> dict[str, Any]:
    return shim_of(nlp).to_arrays()


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [name for name in before if (before[name] != after[name]).any()]


def tuned(*components: str, **elmo: Any) -> Any:
    nlp = with_tasks(*components, frozen=False, **elmo)
    gold = examples(nlp)
    nlp.initialize(lambda: gold)
    for _ in range(3):  # spaCy's output layers start from zero, and hand no gradient down then
        nlp.update(gold, exclude=["elmo"], annotates=["elmo"])
    return nlp


@pytest.fixture
def backward_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the backward passes through a biLM."""
    calls: list[int] = []
    backward = torch.Tensor.backward

    def counted(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return backward(self, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "backward", counted)
    return calls


def test_sum_equals_one_torch_graph(backward_calls: list[int]) -> None:
    """Three listeners in two models, their gradients given, against the same network in torch alone."""
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe("elmo", config=files("random_a") | {"frozen": False})
    parameters = ([0.5, -0.3, 0.1], [0.0, 0.0, 0.0], [-1.0, 2.0, 0.0])
    models = [
        spacy.registry.resolve({"m": elmo_block(scalar_mix_parameters=list(w), layer_norm=norm)})["m"]
        for w, norm in zip(parameters, ("none", "token", "none"))
    ]
    for number, model in enumerate(models):
        for listener in model.walk():
            if listener.name == "elmo_listener":
                pipe.add_listener(listener, f"component {number // 2}")
    docs = [nlp.make_doc(text) for text in ("The bank of the river", "Ham", "a  b")]
    pipe.update([Example(doc, doc.copy()) for doc in docs])
    random = np.random.default_rng(0)
    dY = [[random.normal(size=(len(doc), 32)).astype("f") for doc in docs] for _ in models]
    # the second gives no gradient for the last doc: it was trained on a part
    results = [model.begin_update(docs if k != 1 else docs[:2]) for k, model in enumerate(models)]
    for (Y, backprop), d in zip(reversed(results), reversed(dY)):
        backprop(d[: len(Y)])
    got = gradients(nlp)
    assert len(backward_calls) == 1

    bilm = load_bilm(*files("random_a")["model"].values())
    total = torch.zeros(())
    for i, doc in enumerate(docs):
        shown = [token.i for token in doc if not token.is_space]
        ids = torch.from_numpy(batch_to_ids_array([[doc[k].text for k in shown]]))
        layers = bilm(ids).layers[:, :, 1:-1]
        for k, (w, norm) in enumerate(zip(parameters, ("none", "token", "none"))):
            if k != 1 or i < 2:
                total = total + (ScalarMix(3, norm, w)(layers)[0] * torch.from_numpy(dY[k][i][shown])).sum()
    total.backward()
    for name, parameter in bilm.named_parameters():
        assert parameter.grad is not None
        np.testing.assert_allclose(got[name], parameter.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("l2", "decay"), [(0.0, True), pytest.param(0.1, True, marks=pytest.mark.slow), (0.1, False)])
def test_applied_in_the_same_step_under_nlp_update(l2: float, decay: bool) -> None:
    """The formulas of Thinc's SGD, without the term of L2 for biases."""
    nlp = tuned("tagger", "senter", learn_rate_factor=0.5)
    gold = examples(nlp)
    before = weights(nlp)
    nlp.update(gold, sgd=False)
    gradient = gradients(nlp)
    shim_of(nlp).unfreeze().zero_grad()
    for name in ("tagger", "senter"):  # forget theirs
        nlp.get_pipe(name).model.finish_update(SGD(0.0))
    optimizer = SGD(0.5, grad_clip=0.0, L2=l2, L2_is_weight_decay=decay)
    nlp.update(gold, sgd=optimizer)
    assert l2 == optimizer.L2
    for name, after in shim_of(nlp)._embedder.bilm.named_parameters():  # as it stands, whoever looks
        own = 0.0 if "bias" in name else l2
        if decay:
            expected = (before[name] - 0.25 * gradient[name]) * (1 - 0.25 * own)
        else:
            expected = before[name] - 0.25 * (gradient[name] + own * before[name])
        np.testing.assert_allclose(after.detach(), expected, atol=1e-5)
    assert not gradients(nlp)


@pytest.mark.slow
def test_a_component_may_predict_after_its_update() -> None:
    """spaCy has the components in `annotates` predict the same docs in the same step. No gradient follows from that."""
    results = []
    for annotates in ([], ["tagger"]):
        fix_random_seed(0)
        nlp = tuned("tagger")
        before = weights(nlp)
        nlp.update(examples(nlp), sgd=SGD(0.1), annotates=annotates)
        results.append(weights(nlp))
        assert changed(before, results[-1])
    for name, expected in results[0].items():
        np.testing.assert_allclose(results[1][name], expected, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_two_listeners_of_the_last_component_are_awaited() -> None:
    """[x; ELMo] and [h; ELMo]: with plain SGD the step is -rate times the sum of both gradients."""
    steps = []
    for at_once in (True, False):
        fix_random_seed(0)
        nlp = tuned("tagger", block=tok2vec(output=True), learn_rate_factor=1.0)
        before = weights(nlp)
        if at_once:
            nlp.update(examples(nlp), sgd=SGD(0.1, L2=0.0, grad_clip=0.0))
            steps.append({name: array - before[name] for name, array in weights(nlp).items()})
        else:
            nlp.update(examples(nlp), sgd=False)
            steps.append({name: -0.1 * gradient for name, gradient in gradients(nlp).items()})
    assert any(step.any() for step in steps[1].values())
    for name, expected in steps[1].items():
        np.testing.assert_allclose(steps[0][name], expected, atol=1e-5, err_msg=name)


def test_applied_in_the_same_step_as_spacy_train_does() -> None:
    nlp = tuned("tagger", "ner")
    gold = examples(nlp)
    before = weights(nlp)
    for example in gold:  # accumulate_gradient
        nlp.update([example], sgd=False)
    assert not changed(before, weights(nlp))
    optimizer = Adam(0.001)
    for _, pipe in nlp.pipeline:
        pipe.finish_update(optimizer)
    assert len(changed(before, weights(nlp))) == len(before)
    assert not gradients(nlp)
    key = (shim_of(nlp).id, "char_cnn.embedding.weight")
    assert optimizer.nr_update[key] == 1


@pytest.mark.slow
@pytest.mark.parametrize("how", ["nothing to learn", "exclude", "disabled"])
@pytest.mark.parametrize("through_train", [False, True])
def test_a_component_that_skips_does_not_block(how: str, through_train: bool) -> None:
    nlp = tuned("tagger", "ner")
    gold = examples(nlp)
    before = weights(nlp)
    optimizer = Adam(0.001)
    update: dict[str, Any] = {"sgd": False if through_train else optimizer}
    if how == "nothing to learn":
        # no gold entities, so that ner's update returns at once
        gold = [Example.from_dict(nlp.make_doc(e.text), {"tags": [t.tag_ for t in e.reference]}) for e in gold]
    with nlp.select_pipes(disable=["ner"] if how == "disabled" else []):
        nlp.update(gold, exclude=["ner"] if how == "exclude" else [], **update)
    if through_train:
        for _, pipe in nlp.pipeline:
            pipe.finish_update(optimizer)
    loaded = spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes())  # nothing is lost before saving
    assert changed(before, weights(loaded))
    assert not changed(weights(loaded), weights(nlp))
    assert optimizer.nr_update[shim_of(nlp).id, "char_cnn.embedding.weight"] == 1


@pytest.mark.slow
def test_a_tok2vec_pipe_may_call_back_after_the_last_component(backward_calls: list[int]) -> None:
    """It waits for its own listener, in a component after the last one that listens to elmo itself."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config=files("random_a") | {"frozen": False})
    nlp.add_pipe("tok2vec", config={"model": tok2vec()})
    add_task(nlp, "tagger", tok2vec())
    nlp.add_pipe("ner", config={"model": {"tok2vec": {"@architectures": "spacy.Tok2VecListener.v1", "width": 16}}})
    gold = examples(nlp)
    optimizer = nlp.initialize(lambda: gold)
    for _ in range(3):  # spaCy's output layers start from zero
        nlp.update(gold, sgd=optimizer)
    del backward_calls[:]
    before = weights(nlp)
    nlp.update(gold, sgd=optimizer)
    assert len(backward_calls) == 1
    assert changed(before, weights(nlp))


def test_averages_reach_the_bilm() -> None:
    nlp = tuned("tagger", learn_rate_factor=1.0)
    optimizer = Adam(0.01, use_averages=True)
    for _ in range(3):
        nlp.update(examples(nlp), sgd=optimizer)
    now = weights(nlp)
    with nlp.use_params(optimizer.averages):
        averaged = weights(nlp)
        for name, array in averaged.items():
            np.testing.assert_array_equal(array, optimizer.averages[shim_of(nlp).id, name])
        inside = nlp("Ham is bad")._.elmo
    assert not changed(now, weights(nlp))
    assert np.abs(nlp("Ham is bad")._.elmo - inside).max() > 0


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [True, False])
def test_averages_of_another_layer_with_the_same_id_are_not_the_bilms(frozen: bool) -> None:
    """Thinc counts the ids of layers and of shims apart, both from 1."""
    nlp = with_tasks("tagger", frozen=frozen, learn_rate_factor=1.0)
    nlp.initialize(lambda: examples(nlp))
    optimizer = Adam(0.01, use_averages=True)
    for _ in range(3):
        nlp.update(examples(nlp), sgd=optimizer)
    before, owner = weights(nlp), type(shim_of(nlp)._embedder.bilm)
    others = {(shim_of(nlp).id, name): np.ones((2, 2), "f") for name in ("E", "W")}
    with nlp.use_params(optimizer.averages | others):
        assert bool(changed(before, weights(nlp))) != frozen
        assert type(shim_of(nlp)._embedder.bilm) is owner
    assert not changed(before, weights(nlp))


def test_gradual_unfreezing() -> None:
    nlp = tuned("tagger")
    config = {"@callbacks": "spacy-elmo.GradualUnfreezing.v1", "start": 2, "every": 3, "unit": "step"}
    unfreeze = spacy.registry.resolve({"c": config})["c"]
    parts = ("char_cnn", "lstm.layers.0", "lstm.layers.1")
    for step, number in {0: 0, 1: 0, 2: 1, 4: 1, 5: 2, 8: 3, 100: 3, -1: 3}.items():
        if step >= 0:
            unfreeze(nlp, {"step": step, "epoch": 0})
        else:  # initialisation opens what unfreezing left shut
            unfreeze(nlp, {"step": 0, "epoch": 0})
            nlp.get_pipe("elmo").initialize(lambda: [], nlp=nlp)
        before = weights(nlp)
        nlp.update(examples(nlp), sgd=Adam(0.001))
        names = changed(before, weights(nlp))
        got = {name.rsplit(".", 1)[0] if name.startswith("lstm") else "char_cnn" for name in names}
        assert got == set(parts[len(parts) - number :])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start": -1}, "start is -1"),
        ({"every": 0}, "every is 0"),
        ({"unit": "day"}, "unit is 'day'"),
        ({}, r"'elmo'.*frozen = false; there is none"),
    ],
)
def test_unfreezing_that_can_not_be(settings: dict[str, Any], message: str) -> None:
    nlp, unfreezing = with_tasks(), spacy.registry.callbacks.get("spacy-elmo.GradualUnfreezing.v1")
    with pytest.raises(SettingsError, match=message):
        unfreezing(**settings)(nlp, {"step": 0, "epoch": 0})


@pytest.mark.slow
@pytest.mark.parametrize("trainable", [False, True])
def test_replaced_listener_is_frozen_unless_its_config_says_otherwise(trainable: bool) -> None:
    nlp = with_tasks("tagger", frozen=False, model={"trainable": trainable})
    train(nlp, 2)
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    own = next(node for node in nlp.get_pipe("tagger").model.walk() if node.name == "elmo_bilm").shims[0]
    before = own.to_bytes()
    nlp.update(examples(nlp))
    assert (own.to_bytes() != before) is trainable


def test_one_tuned_and_one_frozen() -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", name="a", config=files("random_a") | {"attr": "a", "frozen": False})
    nlp.add_pipe("elmo", name="b", config=files("random_a") | {"attr": "b"})
    add_task(nlp, "tagger", tok2vec(upstream="a") | {"output_elmo": elmo_block("b")})
    before = {name: shim_of(nlp, name).to_arrays() for name in "ab"}
    train(nlp, 2)
    assert changed(before["a"], shim_of(nlp, "a").to_arrays())
    assert not changed(before["b"], shim_of(nlp, "b").to_arrays())


def two_models(nlp: Any) -> list[Any]:
    """Two mixes of what the pipe gives, linked as components."""
    models = [spacy.registry.resolve({"m": elmo_block()})["m"] for _ in range(2)]
    for number, model in enumerate(models):
        nlp.get_pipe("elmo").add_listener(model.layers[0], f"component {number}")
    return models


@pytest.mark.slow
def test_docs_of_the_step_beside_others() -> None:
    """What the others' layers came from is frozen, so only the gradient of the doc in the step arrives."""
    got = []
    for beside in (False, True):
        nlp = with_tasks(frozen=False)
        other, doc = nlp("Another doc , annotated before"), nlp.make_doc("The bank of the river")
        model = two_models(nlp)[0]
        nlp.get_pipe("elmo").update([Example(doc, doc.copy())])
        Y, backprop = model.begin_update([other, doc] if beside else [doc])
        backprop([np.ones_like(y) for y in Y])
        got.append(gradients(nlp))
    assert any(gradient.any() for gradient in got[0].values())
    for name, expected in got[0].items():
        np.testing.assert_allclose(got[1][name], expected, rtol=1e-5, atol=1e-5)


def test_an_update_without_the_bilm_after_one_with_it() -> None:
    """The step of the first batch is over, and the docs of the second are no part of it."""
    nlp = tuned("tagger")
    nlp.update(examples(nlp), sgd=SGD(0.1))
    before, tagger = weights(nlp), nlp.get_pipe("tagger").model.to_bytes()
    nlp.update(examples(nlp), sgd=SGD(0.1), exclude=["elmo"], annotates=["elmo"])
    assert not changed(before, weights(nlp))
    assert nlp.get_pipe("tagger").model.to_bytes() != tagger


def test_a_gradient_that_comes_too_late_is_no_silent_loss() -> None:
    nlp = with_tasks(frozen=False)
    docs = [nlp.make_doc("The bank of the river")]
    first, last = two_models(nlp)
    pipe = nlp.get_pipe("elmo")
    pipe.update([Example(doc, doc.copy()) for doc in docs])
    pipe.finish_update(SGD(0.1))  # nlp.update(sgd=...) asks before the components run
    for model in (first, last):
        Y, backprop = model.begin_update(docs)
        backprop(Y)
    with pytest.raises(SettingsError, match="its gradient would be lost"):
        first.begin_update(docs)
    pipe.update([Example(doc, doc.copy()) for doc in docs])
    Y, backprop = first.begin_update(docs)
    late = last.begin_update(docs)[1]
    backprop(Y)
    nlp("A prediction uses the weights")
    with pytest.raises(SettingsError, match="its gradient would be lost"):
        late(Y)


def test_one_listener_in_two_places() -> None:
    nlp = with_tasks(frozen=False)
    docs, pipe = [nlp.make_doc("The bank of the river")], nlp.get_pipe("elmo")
    model = spacy.registry.resolve({"m": elmo_block()})["m"]
    pipe.add_listener(model.layers[0], "component")
    pipe.update([Example(doc, doc.copy()) for doc in docs])
    parameters = list(shim_of(nlp)._embedder.bilm.parameters())  # as they stand: the step is still open
    before = [parameter.detach().clone() for parameter in parameters]
    pipe.finish_update(SGD(1.0, grad_clip=0.0, L2=0.0))
    results = [model.begin_update(docs) for _ in range(2)]
    for (Y, backprop), done in zip(results, (False, True)):
        backprop(Y)
        assert all(map(torch.equal, parameters, before)) != done


@pytest.mark.slow
@pytest.mark.parametrize("copied", [lambda nlp: pickle.loads(pickle.dumps(nlp)), copy.deepcopy])
def test_copies_of_a_pipeline_are_tuned_too(copied: Any) -> None:
    nlp = tuned("tagger")
    nlp.get_pipe("elmo").update(examples(nlp))  # a step that has only begun
    other = copied(nlp)
    assert other.get_pipe("elmo").listening_components == ["tagger"]
    before, own = weights(other), weights(nlp)
    other.update(examples(other), sgd=Adam(0.01))
    assert changed(before, weights(other))
    assert not changed(own, weights(nlp))


@pytest.mark.slow
def test_a_frozen_component_does_not_know_the_bilm_that_another_one_tunes(tmp_path: Path) -> None:
    nlp = tuned("tagger", "senter")
    nlp.update(examples(nlp), sgd=Adam(0.01))
    nlp.to_disk(tmp_path / "first")
    nlp.update(examples(nlp), sgd=Adam(0.01))
    nlp("It goes on in this process")
    nlp = spacy.load(tmp_path / "first")
    nlp.update(examples(nlp), sgd=Adam(0.01), exclude=["senter"])
    nlp.to_disk(tmp_path / "second")
    spacy.load(tmp_path / "second", exclude=["senter"])("The tagger has learned from this biLM")
    with pytest.warns(ChangedBiLMWarning):
        spacy.load(tmp_path / "second", exclude=["tagger"])("The senter has not")


def test_another_bilm_that_is_loaded_after_tuning_is_noticed() -> None:
    nlp, other = tuned("tagger"), tuned("tagger")
    for one in (nlp, other, other):
        one.update(examples(one), sgd=Adam(0.01))
    elmo, other_bilm = nlp.get_pipe("elmo"), other.get_pipe("elmo").to_bytes()
    elmo.update(examples(nlp))  # a step that has only begun
    with pytest.raises(ElmoError):
        elmo.from_bytes(other_bilm[:-9])  # changes nothing
    assert elmo.upstream.step is not None
    assert {listener.attrs["bilm"] for listener in elmo.listeners} == {""}
    elmo.from_bytes(other_bilm)
    loaded = weights(nlp)
    with pytest.warns(ChangedBiLMWarning):
        nlp("The tagger was trained with the other one")
    nlp.get_pipe("elmo").finish_update(Adam(0.01))
    assert not changed(loaded, weights(nlp))


@pytest.mark.slow
def test_a_tuned_bilm_that_was_not_saved_is_missed_in_another_pipeline(recwarn: pytest.WarningsRecorder) -> None:
    """Pipelines share a component that one sources from the other. Each biLM is checked, whoever ran before."""
    nlp = tuned("tagger")
    nlp.update(examples(nlp), sgd=Adam(0.01))
    other = with_tasks()
    other.add_pipe("tagger", source=nlp)
    nlp("The tuned biLM is right")
    assert not recwarn.list
    with pytest.warns(ChangedBiLMWarning):
        other("This one is not")
    other("Said once")
    nlp("Still right")
    other("Still said once")
    assert not recwarn.list


def living_tensors() -> int:
    gc.collect()
    return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())


@pytest.mark.slow
def test_memory_does_not_grow_with_updates() -> None:
    """Each parameter keeps its storage: a chain of arrays, each holding the one before, would never be freed."""
    nlp = tuned("tagger")
    places = {name: p.data_ptr() for name, p in shim_of(nlp).unfreeze().named_parameters()}
    nlp.update(examples(nlp), sgd=Adam(0.01))
    tensors = living_tensors()
    for _ in range(5):
        nlp.update(examples(nlp), sgd=Adam(0.01))
    assert living_tensors() <= tensors
    assert {name: p.data_ptr() for name, p in shim_of(nlp).unfreeze().named_parameters()} == places


def test_a_doc_that_was_changed_before_the_component() -> None:
    nlp = tuned("tagger")
    doc = nlp.make_doc("The bank of the river")
    nlp.get_pipe("elmo").update([Example(doc, doc.copy())])
    tagger = nlp.get_pipe("tagger").model
    tagger.begin_update([doc])
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
        retokenizer.split(doc[4], ["ri", "ver"], heads=[(doc[4], 1), doc[3]])
    with pytest.raises(NotEmbeddedError, match="the tokens here are not those"):
        tagger.begin_update([doc])
    doc._.elmo = None
    with pytest.raises(NotEmbeddedError, match="has nothing in"):
        tagger.begin_update([doc])


def test_rehearsing() -> None:
    nlp = tuned("tagger")
    optimizer = nlp.resume_training()
    gold = examples(nlp)
    for example in gold:
        nlp.get_pipe("elmo")(example.predicted)
    nlp.get_pipe("tagger").rehearse(gold, sgd=optimizer)


@pytest.mark.slow
def test_another_thread_predicts_meanwhile() -> None:
    """Training ends in the same bits, and what is predicted is of some step's weights, each as a whole."""

    def made() -> Any:
        fix_random_seed(0)
        nlp = with_tasks("tagger", "ner", frozen=False)
        nlp.initialize(lambda: examples(nlp))
        return nlp

    def train_on(nlp: Any, after: Callable[[], object]) -> bytes:
        fix_random_seed(0)
        optimizer = nlp.resume_training()
        for _ in range(12):
            nlp.update(examples(nlp), sgd=optimizer)
            after()
        saved: bytes = nlp.to_bytes()
        return saved

    def vector(nlp: Any) -> bytes:
        layers: bytes = nlp.get_pipe("elmo").predict([doc])[0].tobytes()
        return layers

    alone, together = made(), made()
    doc = alone.make_doc("Paris likes green ham")
    steps: list[bytes] = []
    expected = train_on(alone, lambda: steps.append(vector(alone)))
    ended, found = threading.Event(), []

    def predict_on() -> None:
        while not ended.is_set():
            found.append(vector(together))
            list(together.pipe(["Ham is bad"]))

    vector(together)
    with ThreadPoolExecutor(1) as pool:
        predicting = pool.submit(predict_on)
        try:
            assert train_on(together, lambda: time.sleep(0.05)) == expected
        finally:
            ended.set()
        predicting.result()
    before = vector(with_tasks(frozen=False))
    assert len(set(found)) > 2
    assert set(found) <= {before, *steps}


def test_a_step_that_a_thread_left_open_ends_when_the_weights_are_used() -> None:
    nlp = tuned("tagger")
    gold = examples(nlp)
    thread = threading.Thread(target=lambda: nlp.update(gold, sgd=False))
    thread.start()
    thread.join()
    assert gradients(nlp)


@pytest.mark.slow
@pytest.mark.parametrize(("frozen", "store"), [(True, "none"), (False, "layers")])
def test_docs_of_the_last_batch_are_free(frozen: bool, store: str) -> None:
    nlp = with_tasks("tagger", "textcat", frozen=frozen, store=store)
    gold = examples(nlp)
    optimizer = nlp.initialize(lambda: gold)

    def docs() -> set[int]:
        gc.collect()
        return {id(each) for each in gc.get_objects() if type(each) is Doc}

    before = docs()
    nlp.update(gold, sgd=optimizer)
    assert docs() <= before
    nlp.update(gold, sgd=False)  # as spacy train
    for _, pipe in nlp.pipeline:
        pipe.finish_update(optimizer)
    assert docs() <= before
