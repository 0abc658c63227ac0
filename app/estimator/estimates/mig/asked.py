"""What `mig` asks for."""

import dataclasses

from app.estimator.hardware.accelerators import accelerators
from app.estimator.inputs import input_field
from app.estimator.shared_inputs import ask_gpu


@dataclasses.dataclass(frozen=True, slots=True)
class MigInputs:
    """Which GPU, and which instances on it."""

    gpu: str = ask_gpu(
        "h100-sxm5-80",
        offered=tuple((a.id, a.name) for a in accelerators() if a.mig_instances),
        help="The GPU to divide; only GPUs that have MIG are listed.",
        topic="mig",
    )
    instances: str = input_field(
        "3g, 2g, 1g",
        "Instances",
        kind="text",
        maximum=400,
        help="The profiles to create, with commas between them: 3g.40gb, 2x 1g.10gb. "
        "3g means three compute slices, 40gb the memory; 3g alone takes the profile of "
        "three slices with the least memory. A table of the result lists the profiles "
        "of this GPU.",
        term="multi-instance-gpu-mig",
        group="Partitions",
        topic="mig",
    )
