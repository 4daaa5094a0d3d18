"""Which programs can read a biLM's official files: this package reads all, AllenNLP and bilm-tf refuse some sizes.

Sources: AllenNLP 2.10.1, modules/elmo.py and modules/elmo_lstm.py; bilm-tf 0.1.post5, bilm/model.py.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .options import BiLMOptions
from .weights.table import CHAR_PROJECTION, LSTM_PROJECTION, expected_parameters

ALLENNLP_CHARACTERS = 50  # ELMoCharacterMapper.max_word_length
BILM_TF_LAYERS = 8  # _pretrained_initializer knows the names of no more
BILM_TF_CHARACTERS = 262  # the rows of char_embed, with the mask
# what they ask for, and this package does not
ALLENNLP_KEYS = ("char_cnn.n_highway", "lstm.cell_clip", "lstm.proj_clip")
BILM_TF_KEYS = ("char_cnn.n_characters", "lstm.use_skip_connections")


class Reader(NamedTuple):
    """A program that reads official files.

    name: its name.
    problems: why it cannot read a biLM; empty if it can.
    """

    name: str
    problems: list[str]


def readers_of(
    options: BiLMOptions, parameters: Iterable[str] | None = None, contents: Mapping[str, Any] | None = None
) -> list[Reader]:
    """Return the programs, each with what it cannot read.

    options: the biLM's sizes.
    parameters: names of its parameters (see `expected_parameters`); None: those that the sizes require.
    contents: of its options.json; None: what `BiLMOptions.to_dict` returns.
    """
    names = list(expected_parameters(options) if parameters is None else parameters)
    char_projection = any(name.startswith(CHAR_PROJECTION) for name in names)
    lstm_projection = any(name.endswith(LSTM_PROJECTION) for name in names)
    allennlp, bilm_tf = [], []
    if not lstm_projection:
        allennlp.append("no projection in the LSTMs (lstm.dim = lstm.projection_dim)")
    elif not options.has_lstm_projection:
        bilm_tf.append("a projection in the LSTMs, which it leaves out at these sizes")
    if not char_projection:
        allennlp.append("no projection in the character encoder (number of filters = lstm.projection_dim)")
    elif not options.has_char_projection:
        bilm_tf.append("a projection in the character encoder, which it leaves out at these sizes")
    if not options.use_skip_connections:
        allennlp.append("no skip connections (lstm.use_skip_connections)")
    if options.max_characters != ALLENNLP_CHARACTERS:
        allennlp.append(f"{options.max_characters} characters a token, not {ALLENNLP_CHARACTERS}")
    if options.n_filters < options.projection_dim:
        bilm_tf.append("fewer filters than lstm.projection_dim")
    if options.n_layers > BILM_TF_LAYERS:
        bilm_tf.append(f"more than {BILM_TF_LAYERS} LSTM layers")
    contents = contents or options.to_dict()
    allennlp += _absent(contents, ALLENNLP_KEYS)
    bilm_tf += _absent(contents, BILM_TF_KEYS)
    if contents["char_cnn"].get("n_highway", 0) is None:
        allennlp.append("char_cnn.n_highway is null")
    if contents["char_cnn"].get("n_characters", BILM_TF_CHARACTERS) != BILM_TF_CHARACTERS:
        bilm_tf.append(f"char_cnn.n_characters is not {BILM_TF_CHARACTERS}, as it is for prediction")
    return [Reader("this package", []), Reader("AllenNLP", allennlp), Reader("bilm-tf", bilm_tf)]


def _absent(contents: Mapping[str, Any], keys: Iterable[str]) -> list[str]:
    paths = (key.split(".") for key in keys)
    return [f"no {part}.{name} in options.json" for part, name in paths if name not in contents[part]]


def readers_told(options: BiLMOptions, parameters: Iterable[str] | None = None) -> str:
    """Return a line that names the programs that can read a biLM, and says why the others cannot.

    options, parameters: as in `readers_of`.
    """
    readers = readers_of(options, parameters)
    able = ", ".join(reader.name for reader in readers if not reader.problems)
    unable = [f"not {reader.name}: {', '.join(reader.problems)}" for reader in readers if reader.problems]
    return "; ".join([able, *unable])
