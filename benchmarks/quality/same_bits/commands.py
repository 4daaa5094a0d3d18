"""The commands of the package, run in this process."""


def command(*arguments: str) -> str:
    """Run a command of `python -m spacy elmo` in this process and return what it prints on stdout.

    arguments: after `elmo`. Raises SystemExit, with what was printed, if the command fails.
    """
    import torch
    from typer.testing import CliRunner

    from spacy_elmo.cli import app

    threads = torch.get_num_threads()
    try:
        result = CliRunner().invoke(app, list(arguments))
    finally:
        torch.set_num_threads(threads)
    if result.exit_code:
        raise SystemExit(f"elmo {' '.join(arguments)}: {result.exit_code}\n{result.output}\n{result.exception!r}")
    return result.stdout
