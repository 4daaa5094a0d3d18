"""A vector for each text, by a pipeline."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import to_numpy, xp2torch
from tqdm import tqdm

from ..errors import SettingsError, check_whole, shown
from ..formats.vectors import of_length_1
from ..models.doc_layers import mean_vector
from .elmo import chosen_pipe, elmo_pipes

Texts = str | Doc | Iterable[str | Doc]


@overload
def encode(
    nlp: Language,
    texts: Texts,
    batch_size: int = 64,
    show_progress_bar: bool = False,
    elmo: str | None = None,
    *,
    normalize_embeddings: bool = False,
    convert_to_numpy: Literal[True] = True,
    convert_to_tensor: Literal[False] = False,
) -> npt.NDArray[np.float32]: ...
@overload
def encode(
    nlp: Language,
    texts: Texts,
    batch_size: int = 64,
    show_progress_bar: bool = False,
    elmo: str | None = None,
    *,
    normalize_embeddings: bool = False,
    convert_to_numpy: bool = True,
    convert_to_tensor: bool = False,
) -> Any: ...
def encode(
    nlp: Language,
    texts: Texts,
    batch_size: int = 64,
    show_progress_bar: bool = False,
    elmo: str | None = None,
    *,
    normalize_embeddings: bool = False,
    convert_to_numpy: bool = True,
    convert_to_tensor: bool = False,
) -> npt.NDArray[np.float32] | Any:
    """Return a vector for each text: the mean of an elmo pipe's vectors over all words.

    It is the doc's `.vector` if the pipe has `set_vectors`. Only the tokenizer, the pipes before the elmo pipe and the
    elmo pipe run.

    texts: strings or docs. One alone gives one vector.
    batch_size: number of texts in a batch, at most. Long texts run in smaller batches.
    show_progress_bar: whether a bar on stderr counts the texts, if stderr is a terminal.
    elmo: name of the elmo pipe; None: the pipeline must have only one.
    normalize_embeddings: whether each vector is divided by its length.
    convert_to_numpy, convert_to_tensor: true and false: an array. Otherwise a torch tensor.

    Returns *Shape:* (texts, width), float32; (width,) for one text. The row of a text without words is zero.
    Raises SettingsError if a text or batch_size can't be used, or if the pipeline has no such elmo pipe, or leaves out
    texts that fail; and the errors of its pipes. A pipe with store = "none" raises NotEmbeddedError.
    """
    if not isinstance(nlp, Language):
        raise SettingsError(
            f"the pipeline is {shown(nlp)}. Expected what spacy.load or spacy.blank returns, then the texts."
        )
    pipes = elmo_pipes(nlp.pipeline)
    name = chosen_pipe(pipes, elmo, "elmo")
    alone = isinstance(texts, str | Doc)
    inputs = _checked([texts] if isinstance(texts, str | Doc) else texts)
    check_whole(batch_size=batch_size)
    docs = nlp.pipe(inputs, batch_size=batch_size, disable=nlp.pipe_names[nlp.pipe_names.index(name) + 1 :])
    # disable = None: the bar is hidden if stderr is not a terminal
    bar = tqdm(docs, total=len(inputs), unit=" texts", disable=None if show_progress_bar else True)
    rows = [to_numpy(mean_vector(doc, attr=pipes[name].attr)) for doc in bar]
    if len(rows) < len(inputs):
        raise SettingsError(
            f"{len(rows)} docs came out of the pipeline for {len(inputs)} texts, because its error handler leaves "
            "out those that fail. Expected a doc for each text: remove the handler, or those texts."
        )
    vectors: npt.NDArray[np.float32] = np.stack(rows) if rows else np.zeros((0, pipes[name].width or 0), np.float32)
    found: Any = vectors[0] if alone else vectors
    if normalize_embeddings:
        found = of_length_1(found)
    return xp2torch(found) if convert_to_tensor or not convert_to_numpy else found


def _checked(texts: Iterable[str | Doc]) -> list[str | Doc]:
    if not isinstance(texts, Iterable) or isinstance(texts, Mapping) or hasattr(texts, "columns"):
        raise SettingsError(f"the texts are {shown(texts)}. Expected strings, as in a list; or one string or Doc.")
    inputs = list(texts)
    for i, text in enumerate(inputs):
        if not isinstance(text, str | Doc):
            raise SettingsError(f"texts[{i}] is {shown(text)}. Expected a string or a Doc.")
        if isinstance(text, str):
            inputs[i] = str(text)  # spaCy refuses subclasses, as numpy has them
            try:
                text.encode("utf8")
            except UnicodeEncodeError as error:
                raise SettingsError(f"texts[{i}] has half a surrogate pair, no character. Change it.") from error
    return inputs
