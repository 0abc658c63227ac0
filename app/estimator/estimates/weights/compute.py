"""The numbers of `weights`."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    total: float
    quantised: float
    rest: float
    per_gpu: float
    covered: int
