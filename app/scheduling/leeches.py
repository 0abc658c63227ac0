"""When a learner hears that a card does not stick."""

LEECH = 8
_WARN_EVERY = 4


def is_leech(lapses: int) -> bool:
    """Whether this lapse makes the learner hear that the card does not stick.

    At the eighth lapse, and at every fourth after it.
    """
    return lapses >= LEECH and (lapses - LEECH) % _WARN_EVERY == 0
