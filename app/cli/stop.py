"""How a command ends that cannot go on."""


class Stop(Exception):  # noqa: N818 - ends the command, with a sentence
    """The command cannot go on; the sentence says what to do about it."""
