"""What `storage` asks for."""

import dataclasses
from typing import NamedTuple

from app.estimator.inputs import InputGroup, input_field
from app.estimator.shared_inputs import ask_gpus, ask_model

_DATA = InputGroup("Data", "cluster-components")
_CHECKPOINTS = InputGroup("Checkpoints", "training-memory")
_STORAGE = InputGroup("Storage", "cluster-components")


class CheckpointContent(NamedTuple):
    """What a checkpoint holds: its label, [B per parameter] by part, who says so."""

    label: str
    parts: tuple[tuple[str, float], ...]
    source: str

    @property
    def each(self) -> float:
        """Bytes for each parameter [B]."""
        return sum(size for _, size in self.parts)


_WEIGHTS, _COPY = ("16-bit weights", 2.0), ("32-bit copy", 4.0)
_MOMENTS = ("first moment", 4.0), ("second moment", 4.0)
CONTENTS = {
    "adamw": CheckpointContent("Everything of AdamW, 14 B", (_WEIGHTS, _COPY, *_MOMENTS), "zero"),
    "adamw-12": CheckpointContent(
        "AdamW without the 16-bit copy, 12 B", (_COPY, *_MOMENTS), "zero"
    ),
    "muon": CheckpointContent(
        "Everything of Muon, 10 B", (_WEIGHTS, _COPY, ("momentum", 4.0)), "muon"
    ),
    "weights": CheckpointContent("16-bit weights alone, 2 B", (_WEIGHTS,), "zero"),
}

SAVING = (("wait", "Training waits"), ("beside", "Training goes on"))


@dataclasses.dataclass(frozen=True, slots=True)
class StorageInputs:
    """The training job, its data, and the storage beneath it."""

    model: str = ask_model()
    gpus: int = ask_gpus(1024, "training-memory")
    gpu_rate: float = input_field(
        900.0,
        "Tokens per second of a GPU",
        unit="token/s",
        minimum=0.001,
        maximum=1e9,
        help="What one GPU trains on; an H100 at 40% of its peak does about 900 of a 70B model.",
        group="Job",
        topic="training-memory",
    )
    tokens: float = _DATA.ask(
        15e12,
        "Tokens of the data set",
        unit="token",
        minimum=1.0,
        maximum=1e18,
        help="Once each, as stored for training.",
        term="token",
    )
    bytes_per_token: float = _DATA.ask(
        4.0,
        "Bytes per token",
        unit="B",
        minimum=0.01,
        maximum=1e9,
        help="4 for numbers of tokens from 65,537 on, 2 below; for images or video "
        "the bytes of a file over the tokens it becomes.",
    )
    copies: int = _DATA.ask(
        2,
        "Copies of the data set",
        minimum=1,
        maximum=100,
        help="Raw and prepared ones together; one is on the fast tier.",
        advanced=True,
    )
    content: str = _CHECKPOINTS.ask(
        "adamw",
        "Checkpoint",
        choices=tuple((key, content.label) for key, content in CONTENTS.items()),
        help="Resuming needs weights and optimizer states; serving only weights.",
        term="checkpoint",
    )
    saving: str = _CHECKPOINTS.ask(
        "wait",
        "While saving",
        choices=SAVING,
        help="Training waits for the write, or copies to host memory and goes on.",
    )
    write_bandwidth: float = _STORAGE.ask(
        100e9,
        "Write bandwidth",
        unit="B/s",
        typed_unit="GB/s",
        minimum=1e6,
        maximum=1e15,
        help="What the storage takes from all nodes together.",
        term="parallel-file-system",
    )
    read_bandwidth: float = _STORAGE.ask(
        200e9,
        "Read bandwidth",
        unit="B/s",
        typed_unit="GB/s",
        minimum=1e6,
        maximum=1e15,
        help="What the storage gives to all nodes together.",
        term="parallel-file-system",
    )
    acceptable: float = _CHECKPOINTS.ask(
        0.05,
        "Acceptable loss",
        typed_unit="%",
        minimum=0.001,
        maximum=0.9,
        help="Share of the time that saving and failures may cost.",
    )
    kept: int = _CHECKPOINTS.ask(
        5,
        "Checkpoints kept",
        minimum=1,
        maximum=100_000,
        help="On the fast tier at the same time.",
        topic="cluster-components",
        advanced=True,
    )
    stall: float | None = _CHECKPOINTS.ask(
        None,
        "Stall of a save",
        unit="s",
        typed_unit="s",
        minimum=0.001,
        maximum=86400.0,
        help="How long training stands; left empty: the whole write, or a second and "
        "the copy to host memory at 20 GB/s a GPU.",
        advanced=True,
    )
    mtbf: float | None = input_field(
        None,
        "Hours between failures of a GPU",
        unit="s",
        typed_unit="h",
        minimum=3600.0,
        maximum=3.6e9,
        help="All causes, its share of the node included; left empty: 50,000 h as in "
        "the training of Llama 3.",
        group="Failures",
        topic="cluster-components",
        advanced=True,
    )
    restart: float = input_field(
        600.0,
        "Restart",
        unit="s",
        typed_unit="min",
        minimum=0.0,
        maximum=604800.0,
        help="From the failure to training again, without reading the checkpoint.",
        group="Failures",
        topic="training-memory",
        advanced=True,
    )
    replicas: int = input_field(
        1,
        "Readers of the checkpoint",
        minimum=1,
        maximum=100_000,
        help="Data-parallel copies that each read all of it; 1 where it is read once "
        "and passed on.",
        term="data-parallelism",
        group="Failures",
        topic="parallelism",
        advanced=True,
    )
    fill: float = _STORAGE.ask(
        0.8,
        "Fill level",
        typed_unit="%",
        minimum=0.1,
        maximum=1.0,
        help="Share of the capacity that is filled at most.",
        advanced=True,
    )
