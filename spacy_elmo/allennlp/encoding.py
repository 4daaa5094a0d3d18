"""A vector for each text, as sentence-transformers' users know it."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import ElmoError, Errors, shown
from ..formats.options import BiLMOptions
from ..formats.text.lines import Unusable
from ..formats.text.splitting import splitter
from ..formats.truncated import TruncatedWords
from ..inference.engine import Engine
from .progress import BarSetting, bar_of
from .sentence_batches import BATCH_SIZE, MAX_TOKENS, batches_of, check_batch_size, checked_words

Array = npt.NDArray[np.float32]


class Encoder:
    """Base class of ElmoEmbedder, with `encode`."""

    _engine: Engine
    _truncated: TruncatedWords

    @property
    def options(self) -> BiLMOptions:
        """The biLM's options."""
        return self._engine.options

    def _run(self, batch: Sequence[Sequence[str]]) -> list[Array]:
        """Return *Shape:* (layers, words, width) for each sentence. Each sentence starts from the zero state."""
        return self._engine.run(self._counted(batch))

    def _counted(self, batch: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the sentences, checked. Words that the biLM does not read to their end are counted."""
        sentences = [checked_words(sentence) for sentence in batch]
        self._truncated.count([word for sentence in sentences for word in sentence], self.options.max_characters)
        return sentences

    def encode(
        self,
        texts: str | Iterable[str | Sequence[str]],
        batch_size: int = BATCH_SIZE,
        show_progress_bar: BarSetting = False,
        lang: str | None = "en",
    ) -> Array:
        """Return a vector for each text: the mean of all layers of all its words. A text is read as one sentence.

        `stateful` has no effect here: the vector of a text depends on that text alone.

        texts: strings, or lists of words. One string alone gives one vector.
        batch_size: number of texts in a batch, at most. Long texts run in smaller batches.
        show_progress_bar: as `progress` of `embed_lines`.
        lang: of the spaCy tokenizer that splits the strings; None: they are split at blanks.

        Returns *Shape:* (texts, width), float32; (width,) for one string. The row of a text without words is zero.
        Raises ElmoError if a text, the language or batch_size can't be used.
        """
        check_batch_size(batch_size)
        alone = isinstance(texts, str)
        sentences = split_texts([texts] if isinstance(texts, str) else texts, lang)
        vectors = np.zeros((len(sentences), self.options.width), np.float32)
        batches = batches_of(sentences, batch_size, MAX_TOKENS)
        with bar_of(len(sentences), show_progress_bar) as bar:
            for row, layers in enumerate(layers for batch in batches for layers in self._run(batch)):
                if layers.shape[1]:
                    vectors[row] = layers.mean((0, 1), dtype=np.float64)
                bar.update()
        return vectors[0] if alone else vectors


def split_texts(texts: Iterable[str | Sequence[str]], lang: str | None) -> list[list[str]]:
    """Return the words of each text.

    texts: strings, which are split, and lists of words, which are not.
    lang: of the spaCy tokenizer; None: split at blanks.

    Raises ElmoError if a text is neither, if it can't be tokenised, or if spaCy does not know the language.
    """
    if not isinstance(texts, Iterable):
        raise ElmoError(Errors.ENCODE_TEXTS.format(got=shown(texts), expected="a list of words"))
    split, sentences = splitter(lang), []
    for number, text in enumerate(texts, 1):
        try:
            sentences.append(split(text) if isinstance(text, str) else checked_words(text))
        except Unusable as error:
            raise ElmoError(Errors.ENCODE_TEXT.format(number=number, reason=error)) from error
        except TypeError as error:  # it can't be iterated: None, a number
            raise ElmoError(
                Errors.ENCODE_KIND.format(number=number, got=shown(text), expected="a list of words")
            ) from error
    return sentences
