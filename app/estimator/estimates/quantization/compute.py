"""The numbers of `quantization`."""

import dataclasses

from app.estimator.models.formats import Format


@dataclasses.dataclass(frozen=True, slots=True)
class Side:
    """One of the two formats on this hardware."""

    form: Format
    total: float
    per_gpu: float
    floor: float | None
    peak: float | None
