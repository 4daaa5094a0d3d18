"""A biLM with its softmax and its vocabulary, and the folder that holds them."""

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from ..errors import WeightsError, shown
from ..formats.atomic import is_unfinished, replacing_folder
from ..formats.names import find_point, folder_of, is_named
from ..formats.options import read_options, write_options
from ..formats.paths import sha256_of
from ..formats.softmax import read_softmax, write_softmax
from ..formats.weights import read_weights, write_weights
from ..modules import BiLM
from ..modules.loading import BEST as BEST
from ..modules.loading import EMBEDDED, embedded_files, find_bilm, is_embedded
from ..modules.loading import OPTIONS as OPTIONS
from ..modules.loading import RUN as RUN
from ..modules.loading import WEIGHTS as WEIGHTS
from .softmax import Softmax
from .vocabulary import Vocabulary

GROUP = "spacy_elmo_softmaxes"
DIGEST = "bilm.sha256"
_NEEDED = ("softmax.hdf5", "vocabulary.txt", DIGEST)


def package_name(name: str) -> str:
    """Return the name of the package of a biLM's softmax."""
    return f"spacy-elmo-{name.replace('_', '-')}-softmax"


def package_folder(name: str, weights: Path) -> Path | None:
    """Return the folder of a named biLM's softmax's package; None if not installed. Raises WeightsError."""
    point = find_point(GROUP, name)
    if point is None:
        return None
    folder = folder_of(point)
    package = package_name(name)
    missing = [file for file in _NEEDED if not (folder / file).is_file()]
    if missing:
        raise WeightsError(
            f"{folder}: {', '.join(missing)} missing. Expected all files of the package {package}: install it again "
            "from a copy that has them, or uninstall it."
        )
    got = (folder / DIGEST).read_text(encoding="ascii", errors="replace").partition(" ")[0]
    expected = sha256_of(weights)
    if got != expected:
        raise WeightsError(
            f"{folder}: this softmax belongs to other weights of {name}: to those of SHA-256 {shown(got)}, but "
            f"{expected} are installed. With these it predicts nothing of use. Install the biLM and {package} "
            "of the same release, or uninstall the latter and set training.frozen_tokens to fit a new softmax."
        )
    return folder


def write_digest(folder: Path, weights: Path) -> None:
    """Write bilm.sha256, which tells the weights that a softmax belongs to."""
    (folder / DIGEST).write_text(f"{sha256_of(weights)}  {weights.name}\n", encoding="utf8", newline="\n")


SOFTMAX, WORDS = "softmax.hdf5", "vocabulary.txt"
COUNTS = "vocabulary.counts.npy"  # may be missing
CARD = "README.md"  # may be missing
LAST = "model-last"  # in the folder of a run, beside BEST
FILES = (OPTIONS, WEIGHTS, SOFTMAX, WORDS)


def refuse_new_run(folder: Path) -> None:
    """Raise WeightsError if a model's folder is that of a run which has written no model yet, or is inside it."""
    run = folder.parent if folder.name in (BEST, LAST) else folder
    if (run / RUN).is_file() and not (folder / OPTIONS).exists():
        raise WeightsError(
            f"{run}: the folder of a pretraining run that has not written all of model-best yet. Expected one "
            "that has been evaluated once: wait, resume the run if it has ended, or lower evaluation.every."
        )


def softmax_folder(model: str | os.PathLike[str]) -> Path | None:
    """Return the folder of a model's softmax.hdf5 and vocabulary.txt; None if it has no softmax. Raises ElmoError.

    model: a folder, that of a run for its model-best, or a biLM's name.
    """
    if is_embedded(model):
        return package_folder(EMBEDDED, Path(embedded_files()[1]))
    folder = find_bilm(model)
    refuse_new_run(folder)
    if (folder / SOFTMAX).exists():
        return folder
    return package_folder(os.fspath(model), folder / WEIGHTS) if is_named(model) else None


def no_softmax(model: str | os.PathLike[str]) -> WeightsError:
    """Return the error that says how a biLM without a softmax gets one."""
    problem = "there is no softmax.hdf5, so it predicts no words. That of the official biLM original is a file of its "
    problem += "own: docs/pretraining.md tells where"
    if is_embedded(model):
        problem = f"its softmax is not installed. Expected the package {package_name(os.fspath(model))}: pip "
        problem += f"install it, or in a clone pip install ./packages/{model}_softmax"
    return WeightsError(
        f"{model}: {problem}. Or fit a new softmax by tuning: python -m spacy elmo pretrain, with paths.init = {model} "
        "in its configuration, and set training.frozen_tokens, for example to 2000000, or to half of a shorter run's "
        "tokens. The first tokens of the run, that many, train the softmax alone."
    )


class LanguageModel:
    """A biLM with the output layer that predicts words. Raises WeightsError if the sizes do not fit each other."""

    def __init__(self, bilm: BiLM, softmax: Softmax, vocabulary: Vocabulary, source: str = "the model") -> None:
        width = bilm.options.projection_dim
        if (softmax.n_words, softmax.projection_dim) != (len(vocabulary), width):
            raise WeightsError(
                f"{source}: the softmax has {softmax.n_words:,} rows of {softmax.projection_dim} values. Expected a "
                f"row for each of the vocabulary's {len(vocabulary):,} words, of {width} values, the biLM's "
                "projection_dim: use files of the same model."
            )
        self.bilm, self.softmax, self.vocabulary = bilm, softmax, vocabulary

    @property
    def words(self) -> list[str]:
        """The words of the softmax's rows: `<S>`, `</S>`, `<UNK>`, then the others."""
        return self.vocabulary.words

    @classmethod
    def load(cls, model: str | os.PathLike[str]) -> "LanguageModel":
        """Read the files of a model (see `softmax_folder`). Raises ElmoError."""
        folder, output = find_bilm(model), softmax_folder(model)
        if is_unfinished(folder):
            raise WeightsError(
                f"{folder}: the process that wrote it ended before it was complete, so its files may be of two "
                "models. Resume the run, which writes it again, or give another folder."
            )
        paths = [folder / OPTIONS, folder / WEIGHTS, *([] if output is None else [output / WORDS])]
        if missing := [path.name for path in paths if not path.exists()]:
            expected = f"the folder of a biLM with its softmax ({', '.join(FILES)}), or that of a pretraining run"
            raise WeightsError(f"{folder}: {', '.join(missing)} missing. Expected {expected}.")
        if output is None:
            raise no_softmax(model)
        options = read_options(folder / OPTIONS)
        softmax = read_output_layer(output / SOFTMAX)
        bilm = BiLM.from_arrays(options, read_weights(folder / WEIGHTS, options))
        return cls(bilm, softmax, Vocabulary.read(output / WORDS), str(model))

    def save(self, folder: str | os.PathLike[str], softmax_dtype: npt.DTypeLike = np.float32) -> None:
        """Write the files that `load` reads; other files stay.

        A new folder appears complete. If the process is killed while files of an earlier model are replaced, `load`
        refuses the folder until it is saved again.
        """
        with replacing_folder(folder, (*FILES, COUNTS), WeightsError) as temporary:
            write_options(temporary / OPTIONS, self.bilm.options)
            write_weights(temporary / WEIGHTS, self.bilm.options, self.bilm.to_arrays())
            write_output_layer(temporary / SOFTMAX, self.softmax, softmax_dtype)
            self.vocabulary.write(temporary / WORDS)


def write_output_layer(path: Path, layer: Softmax, dtype: npt.DTypeLike, *, compress: bool = False) -> None:
    """Write softmax.hdf5. dtype: of its values, float32 or float16."""
    arrays = {name: values.cpu().numpy() for name, values in layer.state_dict().items()}
    write_softmax(path, arrays, dtype, compress=compress)


def read_output_layer(path: Path) -> Softmax:
    """Read softmax.hdf5."""
    arrays = read_softmax(path)
    layer = Softmax(*arrays["weight"].shape)
    layer.load_state_dict({name: torch.from_numpy(values) for name, values in arrays.items()})
    return layer
