"""The numbers of `kv-cache`."""

import dataclasses
import functools

from app.estimator.models.architecture import Architecture


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    per_token: float
    per_sequence: float
    total: float
    per_gpu: float
    state: float


@functools.lru_cache(maxsize=2048)
def state_bytes(model: Architecture) -> float:
    """Recurrent state of one sequence: FP32 state and 16-bit convolutions [B]."""
    return 4 * model.state_elements + 2 * model.convolution_elements
