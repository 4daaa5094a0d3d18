"""The registered architecture spacy-elmo.Entailment.v1: docs -> probabilities of the classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from spacy.tokens import Doc, Span
from thinc.api import ArgsKwargs, Model
from thinc.types import Floats2d
from thinc.util import torch2xp, xp2torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import pad_sequence

from ...errors import AnnotationError, shown
from ...models.types import Tok2VecModel
from ..shared import BiLSTM, TorchShim, check_sizes, shim_of, width_of
from .pairs import pair_of


class Esim(nn.Module):
    """Compares two sentences, word by word. *Shapes:* N pairs, P and H words in the longest premise and hypothesis.

    width: of the word vectors.
    lstm_width: of each direction of the BiLSTMs. The other layers are twice as wide.
    labels: number of classes.
    """

    def __init__(self, width: int, lstm_width: int, labels: int) -> None:
        super().__init__()
        both = 2 * lstm_width
        self.encoder = BiLSTM(width, lstm_width)
        self.comparison = nn.Linear(4 * both, both)
        self.composition = BiLSTM(both, lstm_width)
        self.hidden = nn.Linear(4 * both, both)
        self.output = nn.Linear(both, labels)

    def forward(self, words: Tensor, lengths: Sequence[int], drop: float) -> Tensor:
        """Return a score for each class, before the softmax. *Shape:* (N, labels).

        words: vectors of all words, those of the N premises before those of the N hypotheses. *Shape:* (words, width).
        lengths: number of words of each sentence, in the same order, 2 N numbers, none of them 0.
        drop: dropout rate; only used in training.
        """
        number = len(lengths) // 2
        in_premise, in_hypothesis = _mask(lengths[:number], words), _mask(lengths[number:], words)
        # both in one run of the LSTM
        encoded = _run(self.encoder, self._drop(words, drop), lengths)
        premise, hypothesis = encoded[:number, : in_premise.shape[1]], encoded[number:, : in_hypothesis.shape[1]]
        # align: each word with what it attends to in the other sentence
        similarity = premise @ hypothesis.transpose(1, 2)  # (N, P, H)
        for_premise = _attention(similarity, in_hypothesis) @ hypothesis
        for_hypothesis = _attention(similarity.transpose(1, 2), in_premise) @ premise
        # compare
        compared = torch.cat(
            [
                self._compare(premise[in_premise], for_premise[in_premise]),
                self._compare(hypothesis[in_hypothesis], for_hypothesis[in_hypothesis]),
            ]
        )
        # compose and pool
        composed = _run(self.composition, self._drop(compared, drop), lengths)
        pooled = torch.cat(
            [
                *_pool(composed[:number, : in_premise.shape[1]], in_premise),
                *_pool(composed[number:, : in_hypothesis.shape[1]], in_hypothesis),
            ],
            dim=1,
        )
        hidden = torch.tanh(self.hidden(self._drop(pooled, drop)))
        scores: Tensor = self.output(self._drop(hidden, drop))
        return scores

    def _compare(self, words: Tensor, aligned: Tensor) -> Tensor:
        """Compare words with what they are aligned to. Both, and the result, have *Shape:* (words, 2 * lstm_width)."""
        features = torch.cat([words, aligned, words - aligned, words * aligned], dim=1)
        return torch.relu(self.comparison(features))

    def _drop(self, values: Tensor, rate: float) -> Tensor:
        return dropout(values, rate, self.training)


def _mask(lengths: Sequence[int], like: Tensor) -> Tensor:
    """Return which places of padded sentences have words. *Shape:* (N, longest)."""
    places = torch.arange(max(lengths), device=like.device)
    return places < torch.tensor(lengths, device=like.device)[:, None]


def _run(lstm: BiLSTM, words: Tensor, lengths: Sequence[int]) -> Tensor:
    """Run a BiLSTM over sentences. words: *Shape:* (words, width). Returns *Shape:* (sentences, longest, hidden)."""
    result: Tensor = lstm(pad_sequence(words.split(list(lengths)), batch_first=True), torch.tensor(lengths))
    return result


def _attention(similarity: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax over the words of the last dimension. mask: *Shape:* (N, size of the last dimension)."""
    return torch.softmax(similarity.masked_fill(~mask[:, None], float("-inf")), dim=2)


def _pool(words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and maximum of each sentence's words, *Shape:* (N, width)."""
    outside = ~mask[:, :, None]
    mean = words.masked_fill(outside, 0.0).sum(1) / mask.sum(1, keepdim=True)
    return mean, words.masked_fill(outside, float("-inf")).amax(1)


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
        scores, backprop = _run_pairs(
            model, [[vectors[i][_slice(pairs[i][k])] for i in chosen] for k in (0, 1)], is_train
        )
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


def _run_pairs(
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
        raise AnnotationError(
            f"the premise or hypothesis of the doc {shown(doc.text)} has {length:,} tokens. Expected {longest:,} "
            "at most: divide it, or raise model.longest."
        )
    return pair


def _slice(span: Span) -> slice:
    return slice(span.start, span.end)
