"""What training software keeps and holds beside the formulas, by framework."""

import dataclasses

from app.estimator import catalogue


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingFramework:
    """Habits of one training framework.

    `loss` is bytes per logit at the peak of an unfused loss, `split_loss` the same
    when the vocabulary is divided, `fused_loss` that of a fused kernel.
    `dummies`: one 16-bit gradient of every weight shape is kept ready.
    `unfused`: every operation keeps its own inputs.
    `eager`: bytes at work in the backward pass of one layer, as a multiple of what
    unfused modules keep of it.
    """

    id: str
    label: str
    loss: float
    split_loss: float
    fused_loss: float
    dummies: bool = False
    unfused: bool = False
    eager: float = 0.0


FRAMEWORKS: dict[str, TrainingFramework] = {
    row["id"]: TrainingFramework(**row)
    for row in catalogue.load_toml("training_software.toml")["framework"]
}
USUAL = "usual"
FRAMEWORK_CHOICES: tuple[tuple[str, str], ...] = (
    (USUAL, "PyTorch FSDP, torchtune for adapters"),
    *((framework.id, framework.label) for framework in FRAMEWORKS.values()),
)


def framework_of(choice: str, method: str) -> TrainingFramework:
    """The framework that was chosen, or the usual one for a method of tuning."""
    if choice == USUAL:
        choice = "torch" if method == "full" else "torchtune"
    return FRAMEWORKS[choice]
