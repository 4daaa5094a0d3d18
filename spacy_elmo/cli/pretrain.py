"""`elmo pretrain`"""

from pathlib import Path
from typing import Annotated, Any

import typer
from thinc.api import Config
from wasabi import msg

from ..errors import ElmoError, Errors, SettingsError
from ..formats.options import BiLMOptions
from ..pretraining.config import PretrainConfig
from ..pretraining.loop import pretrain as run


def read_config(path: Path) -> tuple[BiLMOptions, PretrainConfig, Path, Path]:
    """Options, settings, training text and held-out text of a configuration. Raises ElmoError for what can't be used.

    Its sections: [paths] train, heldout; [bilm], laid out as options.json; [training], see PretrainConfig.
    """
    try:
        config = Config().from_disk(path)
    except (OSError, ValueError) as error:
        raise SettingsError(Errors.CONFIG_UNREADABLE.format(path=path, reason=error)) from error
    for section in ("paths", "bilm", "training"):
        if section not in config:
            raise SettingsError(Errors.CONFIG_SECTION.format(path=path, section=section, got=", ".join(config)))
    paths = {name: Path(str(config["paths"].get(name))) for name in ("train", "heldout")}
    for name, text in paths.items():
        if not text.is_file():
            raise SettingsError(Errors.CONFIG_PATH.format(path=path, name=name, got=text))
    training: dict[str, Any] = config["training"]
    unknown = sorted(set(training) - set(PretrainConfig.__dataclass_fields__))
    if unknown:
        expected = ", ".join(PretrainConfig.__dataclass_fields__)
        raise SettingsError(Errors.CONFIG_UNKNOWN.format(path=path, got=", ".join(unknown), expected=expected))
    options = BiLMOptions.from_dict(config["bilm"], f"{path} [bilm]")
    return options, PretrainConfig(**training), paths["train"], paths["heldout"]


def pretrain(
    config: Annotated[
        Path, typer.Argument(help="Configuration, e.g. configs/pretrain.cfg", exists=True, dir_okay=False)
    ],
    output: Annotated[Path, typer.Argument(help="Folder of the run; one that was stopped goes on", file_okay=False)],
) -> None:
    """Train a biLM on text, one sentence a line, words separated by blanks."""
    try:
        options, settings, train, heldout = read_config(config)
        run(options, settings, train, heldout, output, report=msg.text)
    except (ElmoError, OSError) as error:
        msg.fail(str(error), exits=1)
