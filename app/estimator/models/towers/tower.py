"""A vision tower and its projector, as numbers of parameters."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class VisionTower:
    """What turns images into inputs of the language model.

    `encoder` counts the parameters that look at patches, `projector` those that
    bring what they found to the width of the language model.
    """

    kind: str
    encoder: int
    projector: int

    @property
    def parameters(self) -> int:
        """All of its parameters."""
        return self.encoder + self.projector
