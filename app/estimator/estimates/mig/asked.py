"""What `mig` asks for."""

import dataclasses

from app.estimator.hardware.accelerators import accelerators
from app.estimator.inputs import ask
from app.estimator.shared_inputs import ask_gpu


@dataclasses.dataclass(frozen=True, slots=True)
class Mig:
    """Which card, and which instances on it."""

    gpu: str = ask_gpu(
        "h100-sxm5-80",
        offered=tuple((a.id, a.name) for a in accelerators() if a.mig_instances),
    )
    instances: str = ask(
        "3g, 2g, 1g",
        "Instances",
        kind="text",
        maximum=400,
        help="Profiles with commas between them; 7x 1g.10gb for several. 1g without a "
        "memory is the smallest of its kind.",
        term="multi-instance-gpu-mig",
        group="Partitions",
        topic="virtualisation",
    )
