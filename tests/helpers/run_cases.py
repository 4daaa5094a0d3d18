"""A run's settings and facts, made up."""

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.formats.text import BadLine
from spacy_elmo.pretraining.config import CorpusSettings, PathSettings, PretrainConfig, TrainingSettings
from spacy_elmo.pretraining.config_file import text_without_folders
from spacy_elmo.pretraining.metrics import CardFacts, EvaluationRow, RunFacts, TextFacts
from spacy_elmo.pretraining.scoring import Score

OPTIONS = BiLMOptions(
    char_dim=16,
    filters=((1, 32), (3, 64)),
    n_highway=1,
    activation="relu",
    max_characters=50,
    dim=512,
    projection_dim=128,
    n_layers=2,
    cell_clip=3.0,
    proj_clip=3.0,
    use_skip_connections=True,
)
BAD = (BadLine("/home/someone/texts/train.txt", 1234, "not UTF-8"), BadLine("/home/someone/texts/b.txt", 5, "a NUL"))
SHA256 = "0123456789abcdef" * 4
TRAIN = TextFacts("/home/someone/texts/train.txt", 1_000, 20_000, SHA256, n_bad=12, bad=BAD)
HELDOUT = TextFacts("/home/someone/texts/held|out*.txt", 50, 950)
CONFIG = PretrainConfig(
    PathSettings(TRAIN.source, HELDOUT.source, init="/home/someone/model/"),
    OPTIONS,
    CorpusSettings(language="en"),
    training=TrainingSettings(epochs=2.5),
)
RUN = RunFacts(TRAIN, HELDOUT, words=5_000, coverage=0.987, parameters=2_999_888, total_tokens=52_500, processes=2)
# 2 ** 7 and 2 ** 9 over 1,000 predictions, so the mean is 2 ** 8
SCORE = Score(
    sentences=50, tokens=950, unknown=19, loss=(4852.030263919617, 6238.324625039508), unknown_loss=(40.0, 50.0)
)
FACTS = CardFacts(
    text_without_folders(CONFIG),
    OPTIONS,
    "en",
    RUN,
    step=11,
    tokens=52_400,
    epochs=2.4952,
    seconds=9_000.0,
    score=SCORE,
)


def row(step: int, perplexity: float = 100.0) -> EvaluationRow:
    """An evaluation."""
    return EvaluationRow(
        step=step,
        tokens=step * 5_120,
        epochs=step / 400,
        seconds=step * 0.5,
        loss=5.4321,
        rate=0.00312,
        perplexity_forward=perplexity + 10,
        perplexity_backward=perplexity - 10,
        perplexity=perplexity,
        predictions=1_000,
        tokens_per_second=15_432.1,
    )
