"""Peak rates with structured sparsity: two of every four weights are zero."""

from collections.abc import Mapping

from app.estimator.hardware.accelerators import Accelerator

# Formats whose dense rate doubles. NVIDIA has it from Ampere on, AMD from CDNA 3 on,
# where the block-scaled FP4 of CDNA 4 stays as it is.
_NVIDIA = frozenset({"tf32", "bf16", "fp16", "fp8", "int8", "fp4"})
_DOUBLED: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("Ampere", "Ada Lovelace", "Hopper", "Blackwell"), _NVIDIA),
    "CDNA 3": frozenset({"tf32", "bf16", "fp16", "fp8", "int8"}),
    "CDNA 4": frozenset({"bf16", "fp16", "fp8", "int8"}),
}
_NONE = frozenset({"Volta", "Turing", "TPU", "Gaudi"})


def sparse_rate(card: Accelerator, number_format: str, stated: Mapping[str, float]) -> float | None:
    """The peak with 2:4 sparsity [FLOP/s]; None where there is none, or none known.

    `stated` are the rates that a source gives itself, in units of 10^12.

    >>> from app.estimator.hardware.accelerators import find_accelerator
    >>> sparse_rate(find_accelerator("H100"), "fp8", {})
    3957800000000000.0
    """
    if number_format in stated:
        return stated[number_format] * 1e12
    dense: float | None = getattr(card, number_format)
    if dense is None or number_format not in _DOUBLED.get(card.architecture, ()):
        return None
    return 2 * dense


def has_no_sparsity(card: Accelerator) -> bool:
    """Whether the card is known to have no sparse rate in any format."""
    return card.architecture in _NONE
