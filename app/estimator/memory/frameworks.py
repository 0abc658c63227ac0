"""What training software keeps and holds beside the formulas, by framework."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Framework:
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


# Megatron with Transformer Engine: a fused loss keeps only the 16-bit logits, and
# each weight shape has one 16-bit stand-in gradient (SimuMax v1.2 traced both).
# PyTorch: 16-bit logits, an FP32 copy, its log-softmax and their gradients, 14 B in
# reserved memory; 22 B where the loss is divided (torchtitan benchmarks of 2024-12);
# 5 B once the loss is compiled (2025-06). Transformers: 2 + 4 + 4 B. torchtune: the
# loss takes an eighth of the tokens at a time, so an eighth of the bytes of PyTorch
# (its README of 2024-09 has the peaks of LoRA and QLoRA).
FRAMEWORKS: dict[str, Framework] = {
    framework.id: framework
    for framework in (
        Framework("torch", "PyTorch FSDP or DeepSpeed, compiled", 14.0, 22.0, 5.0),
        Framework(
            "torch-eager",
            "PyTorch FSDP or DeepSpeed, eager",
            14.0,
            22.0,
            5.0,
            unfused=True,
            eager=1.7,
        ),
        Framework(
            "megatron",
            "Megatron with Transformer Engine",
            10.0,
            10.0,
            2.0,
            dummies=True,
        ),
        Framework(
            "transformers", "Transformers Trainer", 10.0, 10.0, 4.0, unfused=True
        ),
        Framework("torchtune", "torchtune, compiled, loss in chunks", 1.75, 2.75, 1.75),
    )
}
USUAL = "usual"
FRAMEWORK_CHOICES: tuple[tuple[str, str], ...] = (
    (USUAL, "PyTorch FSDP, torchtune for adapters"),
    *((framework.id, framework.label) for framework in FRAMEWORKS.values()),
)


def framework_of(choice: str, method: str) -> Framework:
    """The framework that was chosen, or the usual one for a method of tuning."""
    if choice == USUAL:
        choice = "torch" if method == "full" else "torchtune"
    return FRAMEWORKS[choice]
