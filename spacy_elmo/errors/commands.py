"""Messages of the commands."""


class CommandMessages:
    """Message templates."""

    # embed and similar

    # info

    # download
