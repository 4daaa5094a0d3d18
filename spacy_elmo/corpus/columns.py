"""Embeds the columns of a table in memory: for Ray's map_batches, Spark's mapInPandas and Dask's map_partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import CorpusError, SettingsError, shown
from ..inference import Embedder
from ..locks import Lock
from ..text.words import Tokenize, Unusable, words_of
from .bilm import BiLMChoice
from .writing import Layers, Selection

Array = npt.NDArray[Any]
_LOCK = Lock()


class EmbedColumns:
    """Adds the vectors of a column of texts to a table. Call it with a table, as often as you like.

    The biLM is loaded at the first call, and stays in memory. Where it is pickled, it is loaded again.

    column: name of the column: each value is a text, a list of words, or missing, which is read as an empty text.
    tokens_column: name of the column of words that is added; None: none is.
    vectors_column: name of the column of vectors that is added; None: "vectors", or "vector" with `sentence`.
    bilm, dtype, sentence, lang: as in `embed`.
    layers: "top", "mean", or the weights of a mix, as in `embed`.

    Raises SettingsError if a setting can't be used.
    """

    def __init__(
        self,
        column: str = "text",
        *,
        tokens_column: str | None = "tokens",
        vectors_column: str | None = None,
        bilm: str | BiLMChoice = "en_core",
        layers: Layers = "mean",
        dtype: str = "float32",
        sentence: bool = False,
        lang: str | None = None,
    ) -> None:
        self.column, self.lang, self.tokens_column = column, lang, tokens_column
        self.vectors_column = vectors_column or ("vector" if sentence else "vectors")
        self.bilm = BiLMChoice(bilm) if isinstance(bilm, str) else bilm
        if self.tokens_column == self.vectors_column:
            raise SettingsError(
                f"tokens_column and vectors_column are both {shown(tokens_column)}. Expected two names: change one."
            )
        self.selection = Selection.of(layers, dtype, sentence)
        if self.selection.name == "all":
            raise SettingsError(
                "layers is 'all'. Expected 'top', 'mean', or the weights of a mix, as a JSON file or a dict."
            )
        self._loaded: tuple[Embedder, Tokenize] | None = None

    def __call__(self, table: Any) -> Any:
        """Return a table with two more columns: "tokens", and "vectors" (or "vector", with `sentence`).

        table: a dict of columns, or a pandas DataFrame. In a row of "vectors" there is an array of
            *Shape:* (tokens, width); in a DataFrame a list of arrays, which Arrow can store. "vector" of a dict is one
            array, *Shape:* (rows, width). A text without words has no tokens, and a vector of zeros, as has a missing
            one: None, NaN, or what pandas takes for missing in a DataFrame. If a DataFrame has no word at all, and
            pyarrow is there, the columns have types of Arrow, as those of other DataFrames become in Arrow.

        Returns a dict or a DataFrame, as `table` is. `table` is not changed.
        Raises CorpusError if it is another table, if the column is missing, if it has a column of a name that would be
        added, or if a text can't be used.
        """
        is_frame = hasattr(table, "assign")
        if not is_frame and not isinstance(table, Mapping):
            raise CorpusError(
                f"expected a dict of columns or a pandas DataFrame, got {type(table)}. Change it into one of "
                "them, as to_pydict() or to_pandas() does with a table of Arrow."
            )
        if self.column not in table:
            got = ", ".join(map(str, table))
            raise CorpusError(
                f"the table has the columns {got or 'none'}. Expected {shown(self.column)} among them: set column "
                "to its name."
            )
        added = {"tokens_column": self.tokens_column, "vectors_column": self.vectors_column}
        for setting, name in added.items():
            if name is not None and name in table:
                raise CorpusError(
                    f"the table has a column {shown(name)}, which would be replaced. Expected another name: change "
                    f"{setting}."
                )
        values = table[self.column]
        if isinstance(values, str) or getattr(values, "ndim", 1) != 1:
            got = shown(values) if isinstance(values, str) else "several columns of this name"
            raise CorpusError(
                f"the column {self.column!r} is {got}. Expected one column with a value for each row: of Ray "
                "map_batches, not map; or give one of the columns another name."
            )
        # Dask calls this in several threads: one loads, and one text is split at a time
        with _LOCK:
            bilm, tokenizer = self._load()
            sentences = self._words(values, tokenizer)
        vectors = self.selection.embed(bilm, sentences)
        tokens: Any = sentences
        rows: Any = vectors
        if not is_frame:
            tokens, rows = _objects(sentences), _objects(vectors)
            if self.selection.sentence:
                rows = np.array(vectors, self.selection.dtype).reshape(-1, bilm.options.width)  # also of no vectors
        else:
            if not self.selection.sentence:
                rows = [list(each) for each in vectors]
            if not any(sentences) and find_spec("pyarrow"):
                tokens, rows = self._typed(tokens, table.index), self._typed(rows, table.index, vectors=True)
        new = {} if self.tokens_column is None else {self.tokens_column: tokens}
        new[self.vectors_column] = rows
        return table.assign(**new) if is_frame else {**table, **new}

    def _typed(self, values: Any, index: Any, vectors: bool = False) -> Any:
        """Return a column without a word with the type that Arrow finds in others: it finds none in empty lists."""
        pandas, arrow = import_module("pandas"), import_module("pyarrow")
        kind = arrow.list_(arrow.type_for_alias(self.selection.dtype) if vectors else arrow.string())
        kind = arrow.list_(kind) if vectors and not self.selection.sentence else kind
        return pandas.Series(pandas.arrays.ArrowExtensionArray(arrow.array(values, kind)), index)

    def _words(self, values: Iterable[Any], tokenizer: Tokenize) -> list[list[str]]:
        sentences = []
        for row, value in enumerate(values):
            try:
                sentences.append(words_of(value, tokenizer))
            except Unusable as error:
                raise CorpusError(
                    f"row {row} of the column {self.column!r} can't be used: {error}. Expected a text, or a list "
                    "of words."
                ) from error
        return sentences

    def _load(self) -> tuple[Embedder, Tokenize]:
        if self._loaded is None:
            bilm = self.bilm.load()
            self.selection.check(bilm.options.layers)
            self._loaded = bilm, self.bilm.tokenizer(self.lang)
        return self._loaded

    def __getstate__(self) -> Mapping[str, Any]:
        return vars(self) | {"_loaded": None}


def _objects(values: Sequence[Any]) -> Array:
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = value
    return array
