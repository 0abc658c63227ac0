"""What the page of a part draws: its memory as it is counted, and its peaks."""

from collections.abc import Mapping

from markupsafe import Markup

from app.drawings.pairs import DoubleBar, draw_pairs
from app.estimator import catalogue
from app.estimator.hardware.accelerators import Accelerator
from app.estimator.hardware.fields import RATES
from app.estimator.hardware.parts import CatalogPart
from app.estimator.hardware.sparsity import sparse_rate


def memory_of(part: CatalogPart) -> Markup | None:
    """As sold beside as the driver reports; None without a reading to compare."""
    sold, read = part.get("memory"), part.get("driver_memory")
    if sold is None or read is None or read.state != "known" or sold.state != "known":
        return None
    says = f"As sold {sold.words}; as the driver reports {read.words}, {read.beside}"
    pairs = (
        DoubleBar("As sold", _number(sold.number), sold.words),
        DoubleBar("As the driver reports", _number(read.number), read.words, look="mark"),
    )
    return draw_pairs(pairs, says)


def rates_of(part: CatalogPart) -> Markup | None:
    """The dense peaks with the sparse ones behind them; None where none is known."""
    if not isinstance(part.entry, Accelerator):
        return None
    stated = _stated(part)
    pairs, said = [], []
    for label, names in _same_rates(part).items():
        value = part[names[0]]
        sparse = sparse_rate(part.entry, names[0], stated)
        beside = f", {value.beside}" if sparse else ""
        dense = f"{value.words} dense"
        pairs.append(DoubleBar(label, _number(value.number), dense, sparse or 0.0))
        said.append(f"{label} {dense}{beside}")
    return draw_pairs(pairs, f"Peak rates: {'; '.join(said)}") if pairs else None


def has_sparse_rates(part: CatalogPart) -> bool:
    """Whether a sparse rate is drawn."""
    return isinstance(part.entry, Accelerator) and any(
        sparse_rate(part.entry, name, _stated(part)) for name in RATES
    )


def _same_rates(part: CatalogPart) -> dict[str, list[str]]:
    """The formats with a known peak; those with one and the same rate together."""
    found: dict[str, list[str]] = {}
    for name in RATES:
        if part[name].state == "known":
            found.setdefault(part[name].words, []).append(name)
    return {", ".join(n.upper() for n in names): names for names in found.values()}


def _stated(part: CatalogPart) -> Mapping[str, float]:
    row = catalogue.load_table("accelerators.toml", "accelerator")[part.id]
    stated: Mapping[str, float] = row.get("sparse", {})
    return stated


def _number(value: float | str | None) -> float:
    return float(value or 0)
