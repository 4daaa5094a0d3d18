"""The registered architecture spacy-elmo.Entailment.v1: docs -> probabilities of the classes."""

from collections.abc import Callable
from functools import partial
from typing import Any

from spacy.tokens import Doc, Span
from thinc.api import ArgsKwargs, Model
from thinc.types import Floats2d
from thinc.util import torch2xp, xp2torch

from ...errors import AnnotationError, Errors, shown
from ...models.types import Tok2VecModel
from ..shared.sizes import check_sizes
from ..shared.tok2vec import width_of
from ..shared.torch_shim import TorchShim, shim_of
from .network import Esim
from .pairs import pair_of

EntailmentModel = Model[list[Doc], Floats2d]
# words of the pairs that run at once in prediction: so memory does not grow with the number of docs
WORDS_AT_ONCE = 16384


def build_entailment(
    tok2vec: Tok2VecModel, lstm_width: int = 64, longest: int = 1000, nO: int | None = None
) -> EntailmentModel:
    """Build spacy-elmo.Entailment.v1: docs of premise and hypothesis -> probabilities of the classes.

    It is ESIM (Chen et al. 2017), made small: a BiLSTM encodes both sentences, attention aligns their words, each word
    is compared with what it is aligned to, a second BiLSTM reads the comparisons, and their mean and maximum are
    classified.

    Output: *Shape:* (docs, classes). The row of a doc without words in its premise or hypothesis has zeros.

    tok2vec: docs -> word vectors, *Shape:* (tokens, width) for each doc.
    lstm_width: of each direction of the BiLSTMs. The other layers are twice as wide.
    longest: number of tokens that a premise or hypothesis may have. Memory grows with the product of both.
    nO: number of classes; null: found at initialisation.

    Raises SettingsError if a size is out of its range.
    """
    check_sizes(lstm_width=lstm_width, longest=longest, **({} if nO is None else {"nO": nO}))
    return Model(
        "entailment",
        forward,
        init=init,
        layers=[tok2vec],
        shims=[TorchShim(partial(Esim, lstm_width=lstm_width))],
        dims={"nO": nO},
        attrs={"dropout_rate": 0.0, "longest": longest},
        refs={"tok2vec": tok2vec},
    )


def init(model: EntailmentModel, X: list[Doc] | None = None, Y: Floats2d | None = None) -> None:
    """Initialise tok2vec, and build the network.

    X: sample docs.
    Y: their classes, *Shape:* (docs, classes).
    """
    tok2vec = model.get_ref("tok2vec")
    tok2vec.initialize(X=X)
    if Y is not None:
        model.set_dim("nO", Y.shape[1])
    if X and model.has_dim("nO"):
        shim_of(model).prepare(width=width_of(tok2vec, X), labels=model.get_dim("nO"))


def forward(
    model: EntailmentModel, docs: list[Doc], is_train: bool
) -> tuple[Floats2d, Callable[[Floats2d], list[Doc]]]:
    """Return the probabilities of the classes, *Shape:* (docs, classes), and backprop."""
    pairs = {i: pair for i, doc in enumerate(docs) if (pair := _pair(doc, model.attrs["longest"])) is not None}
    vectors, backprop_tok2vec = model.get_ref("tok2vec")(docs, is_train)
    probabilities: Any = model.ops.alloc2f(len(docs), model.get_dim("nO"))
    backprops = []
    for chosen in _batches(pairs, is_train):
        scores, backprop = _run(model, [[vectors[i][_slice(pairs[i][k])] for i in chosen] for k in (0, 1)], is_train)
        probabilities[chosen] = model.ops.softmax(scores)
        backprops.append((chosen, backprop))

    def backprop_entailment(d_probabilities: Floats2d) -> list[Doc]:
        """Send gradients back. d_probabilities: probabilities - truth, the gradient of the cross-entropy."""
        d_vectors = [model.ops.alloc2f(*array.shape) for array in vectors]
        for chosen, backprop in backprops:
            for k, arrays in enumerate(backprop(d_probabilities[chosen])):
                for i, array in zip(chosen, arrays):
                    d_vectors[i][_slice(pairs[i][k])] += array
        result: list[Doc] = backprop_tok2vec(d_vectors)
        return result

    return probabilities, backprop_entailment


def _run(
    model: EntailmentModel, sentences: list[list[Floats2d]], is_train: bool
) -> tuple[Floats2d, Callable[[Floats2d], list[list[Floats2d]]]]:
    """Run the network. sentences: word vectors of the premises, and of the hypotheses, *Shape:* (words, width) each.

    Returns the classes' scores, *Shape:* (pairs, classes), and a function from their gradient to those of the vectors.
    """
    rows = [*sentences[0], *sentences[1]]
    lengths = [len(row) for row in rows]
    words = xp2torch(model.ops.xp.concatenate(rows), requires_grad=is_train)
    arguments = ArgsKwargs((words, lengths), {"drop": float(model.attrs["dropout_rate"])})
    output, backprop = shim_of(model)(arguments, is_train)

    def backprop_run(d_scores: Floats2d) -> list[list[Floats2d]]:
        gradients = backprop(ArgsKwargs(((output,),), {"grad_tensors": (xp2torch(d_scores),)}))
        arrays: Any = model.ops.unflatten(torch2xp(gradients.args[0]), model.ops.asarray1i(lengths))
        return [arrays[: len(sentences[0])], arrays[len(sentences[0]) :]]

    scores: Any = torch2xp(output.detach())
    return scores, backprop_run


def _batches(pairs: dict[int, tuple[Span, Span]], is_train: bool) -> list[list[int]]:
    """Return the docs' indices in batches: all at once in training, else similar lengths together."""
    if is_train:
        return [list(pairs)] if pairs else []
    lengths = {i: sum(map(len, pair)) for i, pair in pairs.items()}
    batches: list[list[int]] = []
    for i in sorted(lengths, key=lambda i: lengths[i]):
        if not batches or (len(batches[-1]) + 1) * lengths[i] > WORDS_AT_ONCE:
            batches.append([])
        batches[-1].append(i)
    return batches


def _pair(doc: Doc, longest: int) -> tuple[Span, Span] | None:
    """Return premise and hypothesis; None if one of them has no words. Raises AnnotationError if one is too long."""
    pair = pair_of(doc)
    if pair is not None and (length := max(map(len, pair))) > longest:
        raise AnnotationError(Errors.ENTAILMENT_LONG.format(text=shown(doc.text), got=length, longest=longest))
    return pair


def _slice(span: Span) -> slice:
    return slice(span.start, span.end)
