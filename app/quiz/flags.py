"""The flag of a question, as its button shows it."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Flag:
    """What the button of a question says; `back` is the page it stands on."""

    topic: str
    item: str
    on: bool
    back: str = ""
