"""The biLM that embeds a corpus: which one it is, and the tokenizer that belongs to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from ..errors import WeightsError, shown
from ..formats.options import BiLMOptions
from ..inference import Embedder
from ..inference.linear import Precision, dtype_of
from ..modules import Arrays
from ..modules.loading import card_language, files_of, load_arrays
from ..pipeline.saved import is_pipeline, load_tokenizer, pipeline_folder, pipeline_weights
from ..text.words import Tokenize, blank

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class BiLMChoice:
    """Which biLM is used, and how. A process that gets it can load the biLM itself.

    model: the name of a biLM ("en_core", "original" ...), a folder of a biLM or of a pretraining run, or a saved
        pipeline (folder or package); None: the two files.
    options_file, weight_file: official files; both None: the embedded biLM.
    pipe: name of the elmo pipe of a saved pipeline; None: it has only one.
    pipeline: a saved pipeline that is named as such; None: the model or the files.
    device: a torch device, such as "cpu" or "cuda:0".
    precision: of the matrix multiplications: "float32", "bfloat16" or "auto".
    """

    model: str | None = None
    options_file: str | None = None
    weight_file: str | None = None
    pipe: str | None = None
    pipeline: str | None = None
    device: str = "cpu"
    precision: Precision = "float32"

    @property
    def saved_pipeline(self) -> str | None:
        """The saved pipeline that has the biLM."""
        if self.pipeline is None and self.model is not None and is_pipeline(self.model):
            return self.model
        return self.pipeline

    @property
    def files(self) -> list[Path]:
        """The files of the biLM, or the folder of the saved pipeline."""
        if self.saved_pipeline is not None:
            return [pipeline_folder(self.saved_pipeline)]
        return [Path(file) for file in (self.options_file, self.weight_file) if file] + (
            [] if self.model is None else files_of(self.model)
        )

    @property
    def named_language(self) -> str | None:
        """Code of the language that the biLM's model card names; None for a saved pipeline. Raises ElmoError."""
        if self.saved_pipeline is not None:
            return None
        return card_language(self.options_file, self.model)

    @property
    def language(self) -> str:
        """Code of the tokenizer's language: that of a saved pipeline, or `named_language`, or "en"."""
        pipeline = self.saved_pipeline
        return str(load_tokenizer(pipeline).lang) if pipeline is not None else self.named_language or "en"

    def load(self, weights: tuple[BiLMOptions, Arrays] | None = None) -> Embedder:
        """Return the biLM, of what `load_arrays` returns. Raises ElmoError if it can't be used."""
        dtype = dtype_of(self.precision, torch.device(self.device))  # before files are read
        return Embedder.from_arrays(*(weights or self.load_arrays()), dtype, self.device)

    def load_arrays(self) -> tuple[BiLMOptions, Arrays]:
        """Return the sizes and the weights of the biLM. Raises ElmoError if they can't be used."""
        pipeline = self.saved_pipeline
        if pipeline is not None:
            return pipeline_weights(pipeline, self.pipe)
        return load_arrays(self.options_file, self.weight_file, self.model)

    def tokenizer(self, lang: str | None) -> Tokenize:
        """Return the tokenizer of a language, by default the pipeline's or `language`. Raises CorpusError."""
        pipeline = self.saved_pipeline
        if lang is None and pipeline is not None:
            return Tokenize(partial(load_tokenizer, pipeline))
        return Tokenize(partial(blank, lang or self.language))


def embed_finite(bilm: Embedder, sentences: Sequence[Sequence[str]]) -> Iterator[tuple[int, Array]]:
    """Yield what `Embedder.embed` does. Raises WeightsError for layers that are not finite."""
    for i, layers in bilm.embed(sentences):
        if not np.isfinite(layers).all():
            raise WeightsError(
                "the biLM gives values that are NaN or infinite for the sentence "
                f"{shown(' '.join(sentences[i]))}. Expected finite ones: its weights are damaged, or too large. Get "
                "its files again."
            )
        yield i, layers
