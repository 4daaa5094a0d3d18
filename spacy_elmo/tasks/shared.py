"""What the components of the four tasks share: docs of several texts, settings, and torch networks in Thinc models."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import srsly
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from srsly.msgpack import msgpack_decoders, msgpack_encoders
from thinc.api import ArgsKwargs, Model, PyTorchShim, torch2xp, xp2torch
from thinc.types import Floats2d
from thinc.util import get_torch_default_device
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from ..errors import AnnotationError, LostAnnotationsWarning, SettingsError, UnknownLabelWarning, WeightsError, shown
from ..inference.embedder import batches_of as batches_of
from ..inference.workers import run_apart, run_both
from ..locks import Lock
from ..models.types import lines_of

Scorer = Callable[..., dict[str, Any]]  # examples -> scores
_REGISTERING = Lock()  # of extensions: two threads may build pipelines

# spaCy reads and writes each span group with them, and each time they would search all entry points of the environment.
# A process finds the same ones each time: where there are none, as usual, the search is left out.
for _registry in (msgpack_decoders, msgpack_encoders):
    _registry.entry_points = bool(_registry.get_entry_points())


def make_doc(nlp: Language, texts: Sequence[str], keys: Sequence[str]) -> Doc:
    """Return a doc of texts with line breaks between them, each a span of `doc.spans`; an empty text none.

    A line break inside, but for the last text, becomes a blank: where spaCy restores no spans, it would end it.
    """
    for key, text in zip(keys, texts):
        if not isinstance(text, str):
            raise AnnotationError(f"the text for {key!r} is {shown(text)}. Expected a string.")
    doc = nlp.make_doc("\n".join([*(text.replace("\n", " ") for text in texts[:-1]), texts[-1]]))
    start = 0
    for key, text in zip(keys, texts):
        tokens = [token for token in doc if start <= token.idx and token.idx + len(token) <= start + len(text)]
        # spaCy can't copy a doc with an empty span
        doc.spans[key] = [doc[tokens[0].i : tokens[-1].i + 1]] if tokens else []
        start += len(text) + 1
    return doc


def texts_of(doc: Doc, keys: Sequence[str]) -> list[Span] | None:
    """Return a doc's spans under these keys, or without any the parts between line breaks; None: one has no words."""
    names = ", ".join(map(repr, keys))
    if any(key in doc.spans for key in keys):
        counts = [len(doc.spans[key]) if key in doc.spans else None for key in keys]
        if not {0, 1}.issuperset(counts):
            raise AnnotationError(
                f"the doc {shown(doc.text)} has {counts} spans in {names}. Expected one span for each key in doc.spans."
            )
        texts = [span for key in keys for span in doc.spans[key]]
    else:
        texts = lines_of(doc, len(keys))
        if len(texts) < len(keys) and any(not token.is_space for token in doc):
            raise AnnotationError(
                f"the doc {shown(doc.text)} has no span groups {names}, and no line breaks that divide it into these. "
                "Expected one span for each key in doc.spans, or the texts in this order, a line break between them."
            )
    if len(texts) < len(keys) or not all(text.text.strip() for text in texts):
        return None
    return texts


def keep_texts(doc: Doc, keys: Sequence[str], texts: Sequence[Span]) -> None:
    """Write the texts of a doc to `doc.spans`, unless they are there."""
    for key, text in zip(keys, texts):
        if key not in doc.spans:
            doc.spans[key] = [text]


def set_getter(owner: type[Doc] | type[Span], name: str, getter: Callable[..., Any], **arguments: Any) -> None:
    """Set an extension attribute that a function reads. One of this name that reads otherwise is an error."""
    with _REGISTERING:
        if not owner.has_extension(name):
            owner.set_extension(name, getter=partial(getter, **arguments))
        found = owner.get_extension(name)[2]
    if not isinstance(found, partial) or (found.func, found.keywords) != (getter, arguments):
        raise SettingsError(
            f"{owner.__name__}._.{name} was set by something else, such as another package, or a component with "
            f"another prefix. Call {owner.__name__}.remove_extension({name!r}) before this component is made, or set "
            "its prefix, if it has this setting, to another name."
        )


def build_given_spans(keys: list[str]) -> Callable[[Language, Example], Iterator[Example]]:
    """Build spacy-elmo.GivenSpans.v1: it copies span groups of the annotated doc, such as predicates, to the other.

    keys: names of the span groups. Those that a doc lacks stay missing.
    """

    def give(nlp: Language, example: Example) -> Iterator[Example]:
        for key in keys:
            if key in example.reference.spans:
                example.predicted.spans[key] = aligned(example, example.reference.spans[key])
        yield example

    return give


def aligned(example: Example, spans: Iterable[Span], *, to_reference: bool = False) -> list[Span]:
    """Return spans of the reference in the predicted doc, or the other way round; without those of no whole tokens."""
    align = example.get_aligned_spans_x2y if to_reference else example.get_aligned_spans_y2x
    found: list[Span] = align(list(spans), allow_overlap=True)
    return found


def warn_of_unknown(name: str, found: Iterable[str], labels: Iterable[str], said: set[str]) -> None:
    """Issue an UnknownLabelWarning if examples have labels that a component lacks, and note in `said` which."""
    unknown = sorted(set(found).difference(labels, said))
    if unknown:
        said.update(unknown)
        warnings.warn(
            f"the component {name!r} does not have these labels of its examples: {', '.join(unknown)}. It does not "
            "learn them. Make it anew and initialise it with these examples, or put the labels in "
            f"[initialize.components.{name}.labels].",
            UnknownLabelWarning,
            stacklevel=2,
        )


def warn_of_lost(name: str, what: str, sizes: Sequence[int], setting: str, value: int) -> None:
    """Issue a LostAnnotationsWarning if a setting is too small for more than 5 % of the sizes of annotations."""
    enough = int(np.quantile(sizes, 0.95, method="higher")) if sizes else 0
    if enough > value:
        number = sum(size > value for size in sizes)
        warnings.warn(
            f"{number:,} of {len(sizes):,} {what} ({number / len(sizes):.0%}) in the examples are beyond {setting} = "
            f"{value} of the component {name!r}, which never predicts these. {enough} is enough for 95 % of them.",
            LostAnnotationsWarning,
            stacklevel=2,
        )


def no_examples_error(name: str, number: int, expected: str) -> AnnotationError:
    return AnnotationError(
        f"the component {name!r} can't be initialised: none of its examples ({number}) has {expected}. "
        "Give it examples with them: nlp.initialize(lambda: examples)."
    )


def default_tok2vec(depth: int) -> dict[str, Any]:
    """Return the config of a tok2vec on word features, whose vectors know of `depth` tokens on each side."""
    embed = {"@architectures": "spacy.MultiHashEmbed.v2", "width": 96, "include_static_vectors": False}
    embed |= {"attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"], "rows": [5000, 1000, 2500, 2500]}
    encode = {"@architectures": "spacy.MaxoutWindowEncoder.v2", "width": 96, "depth": depth, "window_size": 1}
    return {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode | {"maxout_pieces": 3}}


def init_tok2vec(model: Model[Any, Any], docs: list[Doc] | None) -> int | None:
    """Initialise a model's tok2vec. Return the width of its vectors, or None without sample docs."""
    tok2vec = model.get_ref("tok2vec")
    tok2vec.initialize(X=docs)
    if not docs:
        return None
    width: int | None = tok2vec.maybe_get_dim("nO")
    return tok2vec.predict(docs[:1])[0].shape[1] if width is None else width


def init_network(model: Model[Any, Any], X: list[Doc] | None = None, Y: Any = None) -> None:
    """Initialise tok2vec, and build the torch network for its width and for the labels, if Y is (docs, labels)."""
    width = init_tok2vec(model, X)
    if Y is not None:
        model.set_dim("nO", Y.shape[1])
    has_labels = model.has_dim("nO")  # False: it has no such dimension; None: their number is not known
    if width and has_labels is not None:
        shim_of(model).prepare(width=width, **({"labels": model.get_dim("nO")} if has_labels else {}))


class TorchShim(PyTorchShim):
    """Holds a torch network that is built late, when the width of its input (or the number of labels) is known.

    In contrast to Thinc's own shim, `use_params` gives it the optimizer's averages; the bytes are msgpack of arrays.
    The network's mode is never switched, because other threads may run it: it gets the dropout with each call.
    build: function from sizes to the network, at module level or a partial of such a one, so that pipelines pickle.
    """

    def __init__(self, build: Callable[..., nn.Module]) -> None:
        super().__init__(None)
        self.build = build
        self.sizes: dict[str, int] = {}  # those of the network; empty before `prepare`

    @property
    def network(self) -> Any:
        """The network. Before `prepare` a KeyError, as of Thinc's weights: spaCy then asks to initialize."""
        if self._model is None:
            raise KeyError("the network is not built yet. Call nlp.initialize(lambda: examples), or load weights.")
        return self._model

    def prepare(self, **sizes: int) -> None:
        """Build the network, with new weights: each `nlp.initialize` begins anew, as with spaCy's own layers."""
        self._model = self.build(**sizes).to(get_torch_default_device())
        self.sizes = sizes

    @torch.no_grad()
    def predict(self, inputs: ArgsKwargs) -> Any:
        return self.network(*inputs.args)

    def finish_update(self, optimizer: Any) -> None:
        """Apply the gradients of the last backward pass; none before `prepare`."""
        if self._model is not None:
            super().finish_update(optimizer)

    @contextmanager
    def use_params(self, params: Mapping[tuple[int, str], Any]) -> Iterator[None]:
        """Use other weights for a while, such as the optimizer's averages, by this shim's id and their names."""
        named = dict(self._model.named_parameters()) if self._model is not None else {}
        others = {name: params[self.id, name] for name in named if (self.id, name) in params}
        own = {name: named[name].data for name in others}
        for name, values in others.items():
            named[name].data = xp2torch(values, device=named[name].device)
        try:
            yield
        finally:
            for name, data in own.items():
                named[name].data = data

    def to_bytes(self) -> Any:
        """Return sizes and weights as msgpack."""
        state = {} if self._model is None else self._model.state_dict()
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}
        return srsly.msgpack_dumps({"sizes": self.sizes, "arrays": arrays})

    def from_bytes(self, bytes_data: bytes) -> TorchShim:
        """Build the network of the saved sizes and weights. If they don't fit: WeightsError, and no change."""
        network = None
        try:
            message = srsly.msgpack_loads(bytes_data)
            sizes, arrays = message["sizes"], message["arrays"]
            if sizes:
                network = self.build(**sizes).to(get_torch_default_device())
                network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
        # msgpack's own errors are ValueErrors; torch tells the names and shapes that differ
        except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise WeightsError(
                f"the saved weights of a component are damaged, or not those of its network ({error}). Get the files "
                "again, and load them with the settings that the component was saved with, as spacy.load does."
            ) from error
        self._model, self.sizes = network, sizes
        return self


def shim_of(model: Model[Any, Any]) -> TorchShim:
    (shim,) = model.shims
    assert isinstance(shim, TorchShim)
    return shim


def dropout_of(model: Model[Any, Any], is_train: bool) -> float:
    """Return the dropout of a model's networks: in prediction 0."""
    return float(model.attrs["dropout_rate"]) if is_train else 0.0


def loss_of(loss: Callable[..., Tensor], *scores: Any) -> tuple[float, list[Any]]:
    """Return what a function of torch makes of arrays of scores, and its gradients."""

    def run() -> tuple[float, list[Any]]:
        tensors = [xp2torch(one, requires_grad=True) for one in scores]
        value = loss(*tensors)
        if value.requires_grad:  # else there is nothing to learn
            value.backward()
        return value.item(), [torch2xp(torch.zeros_like(one) if one.grad is None else one.grad) for one in tensors]

    return run_apart(run)


def mean_of(losses: Sequence[Tensor]) -> Tensor:
    """Return the mean of losses; 0 of none."""
    return torch.stack(list(losses)).mean() if losses else torch.zeros(())


def run_network(
    model: Model[Any, Any],
    vectors: Sequence[Floats2d],
    batches: Iterable[list[int]],
    given: Callable[[list[int]], tuple[Any, ...]],
    is_train: bool,
) -> tuple[list[Any], Callable[[Sequence[Any]], list[Floats2d]]]:
    """Run the torch network of a model's shim on rows of tokens, a batch after the other.

    batches: numbers of rows. given: tells of a batch where the rows' tokens are, as numbers of docs and slices, and the
    arguments of the network that follow their vectors. Returns the output of each row, perhaps padded, and a function
    that makes the gradient of the vectors of the outputs' gradients, which may lack the padding.
    """
    outputs: dict[int, Any] = {}
    steps = []
    for numbers in batches:
        places, *args = given(numbers)
        flat = xp2torch(model.ops.xp.concatenate([vectors[doc][part] for doc, part in places]), requires_grad=is_train)
        inputs = ArgsKwargs((flat, *args, dropout_of(model, is_train)), {})
        output, backprop_torch = run_apart(partial(shim_of(model), inputs, is_train))
        rows: Any = torch2xp(output, ops=model.ops)
        outputs.update(zip(numbers, rows))
        steps.append((numbers, places, output, rows, backprop_torch))

    def backprop(gradients: Sequence[Any]) -> list[Floats2d]:
        d_vectors = [model.ops.alloc2f(*array.shape) for array in vectors]
        for numbers, places, output, rows, backprop_torch in steps:
            d_rows = model.ops.xp.zeros_like(rows)
            for values, number in zip(d_rows, numbers):
                values[: len(gradients[number])] = gradients[number]
            d_outputs = ArgsKwargs(((output,),), {"grad_tensors": (xp2torch(d_rows),)})
            d_flat: Any = torch2xp(run_apart(partial(backprop_torch, d_outputs)).args[0], ops=model.ops)
            start = 0
            for doc, part in places:
                end = start + part.stop - part.start
                d_vectors[doc][part] += d_flat[start:end]
                start = end
        return d_vectors

    return [outputs[number] for number in sorted(outputs)], backprop


class BiLSTM(nn.Module):
    """A bidirectional LSTM over padded rows. Padding does not change what it returns for the tokens of a row.

    Each layer is two LSTMs, the second from the rows' ends. torch's packed rows take 1.5 to 2.2 times as long on a CPU.
    """

    def __init__(self, width: int, lstm_width: int, depth: int = 1) -> None:
        super().__init__()
        widths = [width, *[2 * lstm_width] * (depth - 1)]
        self.forwards = nn.ModuleList(nn.LSTM(each, lstm_width, batch_first=True) for each in widths)
        self.backwards = nn.ModuleList(nn.LSTM(each, lstm_width, batch_first=True) for each in widths)

    def forward(self, x: Tensor, lengths: Tensor, dropout: float = 0.0) -> Tensor:
        """Return *Shape:* (rows, tokens, 2 * lstm_width). What is beyond a row's end means nothing.

        x: *Shape:* (rows, tokens, width). dropout: rate between the layers.
        """
        places = torch.arange(x.shape[1], device=x.device)[None]
        lengths = lengths.to(x.device)[:, None]
        mirrored = torch.where(places < lengths, lengths - 1 - places, places)
        for number, (forwards, backwards) in enumerate(zip(self.forwards, self.backwards)):
            if number:
                x = F.dropout(x, dropout)
            weights = [*forwards.parameters(), *backwards.parameters()]
            both = (forwards, backwards), torch.is_grad_enabled()
            ahead, back = _Directions.apply(both, x, _take(x, mirrored), *weights)
            x = torch.cat([ahead, _take(back, mirrored)], dim=-1)
        return x


class _Directions(torch.autograd.Function):
    """Runs two LSTMs at the same time, also in the backward pass, in which torch would run one after the other."""

    @staticmethod
    def forward(
        ctx: Any, both: tuple[Sequence[nn.Module], bool], x: Tensor, y: Tensor, *_: Tensor
    ) -> tuple[Tensor, ...]:
        lstms, is_train = both
        inputs = [each.detach().requires_grad_(is_train) for each in (x, y)]
        outputs: list[Any] = [None, None]

        def run(k: int) -> None:
            with torch.set_grad_enabled(is_train):
                outputs[k], _ = lstms[k](inputs[k])

        run_both(partial(run, 0), partial(run, 1))
        ctx.outputs, ctx.leaves = outputs, [[x, *lstm.parameters()] for x, lstm in zip(inputs, lstms)]
        return tuple(output.detach() for output in outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        found: list[Any] = [None, None]

        def run(k: int) -> None:
            found[k] = torch.autograd.grad(ctx.outputs[k], ctx.leaves[k], d_outputs[k], retain_graph=True)

        run_both(partial(run, 0), partial(run, 1))
        (d_x, *first), (d_y, *second) = found
        return None, d_x, d_y, *first, *second


def _take(x: Tensor, places: Tensor) -> Tensor:
    """Return the vectors of each row at these places, *Shape:* (rows, tokens)."""
    return x.gather(1, places[:, :, None].expand(-1, -1, x.shape[2]))


def is_inside(lengths: Tensor, longest: int) -> Tensor:
    """Return *Shape:* (rows, longest), true at the tokens of padded rows and false at the padding."""
    return torch.arange(longest, device=lengths.device)[None] < lengths[:, None]
