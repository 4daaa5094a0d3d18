"""All settings of a run together."""

from dataclasses import dataclass, field

from ...formats.options import BiLMOptions
from .checks import help_text
from .consistency import check_together
from .sections import CorpusSettings, EvaluationSettings, PathSettings, TrainingSettings, VocabularySettings


@dataclass(frozen=True)
class PretrainConfig:
    """All sections, and the sizes of the network. Raises SettingsError for values that do not go together."""

    paths: PathSettings = field(
        metadata=help_text("relative paths begin at the folder that the command runs in"),
    )
    bilm: BiLMOptions = field(
        metadata=help_text("sizes of the network, laid out as options.json; left out: those of paths.init")
    )
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    vocabulary: VocabularySettings = field(default_factory=VocabularySettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)

    def __post_init__(self) -> None:
        check_together(self.paths, self.vocabulary, self.training)
