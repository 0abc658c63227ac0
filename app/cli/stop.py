"""How a command ends that cannot go on."""


class CommandError(Exception):
    """The command cannot go on; the sentence says what to do about it."""
