"""Sustained FLOP/s and bandwidth of one accelerator; roofline."""

import dataclasses

from app.estimator import data_files
from app.estimator.hardware.catalog import Accelerator

# Rows and columns of a tile, which one multiprocessor computes at a time.
_TILE_ROWS = 128.0
# Work lost at the end of a product while multiprocessors idle, in waves of tiles.
_IDLE_WAVE_SHARE = 0.15
# Share of the memory bandwidth that streaming kernels reach (SimuMax and the operator
# tables of aiconfigurator: 0.67 to 0.87).
STREAMING_BANDWIDTH_SHARE = 0.8
# Exponent of the power limit in the sustained rate of long runs; fitted together with
# the shares of data/training_rates.toml.
_POWER_LIMIT_EXPONENT = 0.43
# No chip sustains more of its peak, however ample its power is. cuBLAS reached 105 to 115 of
# the 119.5 TFLOP/s of an L20 (88 to 96%; LeetCUDA, HGEMM), and 66 of 80 on an RTX 3090 Ti.
_MOST_OF_PEAK = 0.9


@dataclasses.dataclass(frozen=True, slots=True)
class SustainedPeakShares:
    """Sustained rates of accelerators of one architecture, as shares of their peaks."""

    id: str
    watts_at_measurement: float
    matmul_bf16: float
    attention: float
    attention_with_previous_kernels: float
    peak_flops_per_multiprocessor: float
    matmul_fp8: float | None = None
    matmul_fp4: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class SustainedRates:
    """Sustained rates of one accelerator over a long run.

    `matmul` is the rate in the chosen format, `matmul_16bit` and `attention` those in 16 bit
    [FLOP/s]; `bandwidth` is that of streaming kernels [B/s]; `multiprocessors` the number
    of tiles computed at once [1]; `peak` the dense peak of the format.
    """

    matmul: float
    matmul_16bit: float
    attention: float
    bandwidth: float
    multiprocessors: float
    peak: float


def find_sustained_peak_shares(architecture: str) -> SustainedPeakShares:
    """Return the sustained shares of an architecture.

    >>> find_sustained_peak_shares("Hopper").matmul_bf16
    0.627
    """
    rows = data_files.load_table_entries_by_id("training_rates.toml", "generation")
    row = next((r for r in rows.values() if architecture in r["architectures"]), None)
    row = row or rows["other"]
    return SustainedPeakShares(**data_files.pick_dataclass_fields(row, SustainedPeakShares))


def compute_sustained_rates(
    gpu: Accelerator, number_format: str = "bf16", *, older_kernels: bool = False
) -> SustainedRates:
    """Return the sustained rates of `gpu` for products in a format, and from memory.

    Share of the dense peak, scaled by (power limit / usual limit)^0.43, at most 90%.

    `older_kernels`: attention kernels of the previous generation. Raises ValueError if the data
    sheet lacks a needed value.

    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> round(compute_sustained_rates(find_accelerator("H100")).matmul / 1e12)
    620
    """
    shares = find_sustained_peak_shares(gpu.architecture)
    peak16 = gpu.dense_peak_rate("bf16")
    peak = gpu.dense_peak_rate(number_format)
    if peak16 is None or gpu.memory_bandwidth is None:
        raise ValueError(f"16-bit rate and bandwidth of the {gpu.name} are not known")
    if peak is None:
        raise ValueError(f"the {gpu.name} does not compute in {number_format}")
    scale = 1.0
    if shares.watts_at_measurement and gpu.tdp:
        scale = (gpu.tdp / _scaled_benchmark_power_limit(gpu, shares)) ** _POWER_LIMIT_EXPONENT
    attention_share = shares.attention_with_previous_kernels if older_kernels else shares.attention
    return SustainedRates(
        matmul=peak * min(scale * _sustained_matmul_share(shares, number_format), _MOST_OF_PEAK),
        matmul_16bit=peak16 * min(scale * shares.matmul_bf16, _MOST_OF_PEAK),
        attention=peak16 * min(scale * attention_share, _MOST_OF_PEAK),
        bandwidth=gpu.memory_bandwidth * STREAMING_BANDWIDTH_SHARE,
        multiprocessors=peak16 / shares.peak_flops_per_multiprocessor,
        peak=peak,
    )


def _scaled_benchmark_power_limit(gpu: Accelerator, shares: SustainedPeakShares) -> float:
    """Power limit at which the share was measured, scaled to the size of this chip [W]."""
    multiprocessors = (gpu.dense_peak_rate("bf16") or 0.0) / shares.peak_flops_per_multiprocessor
    full_chip_sizes = {"ampere": 108.0, "hopper": 132.0, "blackwell": 148.0, "ada": 142.0}
    size_share = multiprocessors / full_chip_sizes.get(shares.id, multiprocessors)
    return shares.watts_at_measurement * min(1.0, size_share)


def _sustained_matmul_share(shares: SustainedPeakShares, number_format: str) -> float:
    if number_format in ("nvfp4", "mxfp4", "fp4"):
        return shares.matmul_fp4 or 0.4
    if number_format in ("fp8", "mxfp8", "int8"):
        return shares.matmul_fp8 or shares.matmul_bf16
    return shares.matmul_bf16


def matmul_time(
    rows: float, input_width: float, output_width: float, matmul_rate: float, rates: SustainedRates
) -> float:
    """Time of a product of `rows` × `input_width` with `input_width` × `output_width` [s].

    The roofline with a rounded corner, (c³ + m³)^⅓: c = 2·m·n·k / rate, longer
    where few tiles leave multiprocessors idle; m = bytes of all three matrices in
    16 bit over the bandwidth.

    `matmul_rate`: sustained rate for large products [FLOP/s].

    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> engine = compute_sustained_rates(find_accelerator("H100"))
    >>> round(matmul_time(8192, 8192, 8192, engine.matmul, engine) * 1e3, 3)
    1.781
    """
    tiles = max(1.0, rows / _TILE_ROWS) * max(1.0, output_width / _TILE_ROWS)
    compute_time = 2 * rows * input_width * output_width / matmul_rate
    compute_time *= 1 + _IDLE_WAVE_SHARE * rates.multiprocessors / tiles
    bytes_moved = 2 * (input_width * output_width + rows * (input_width + output_width))
    memory_time = bytes_moved / rates.bandwidth
    time: float = (compute_time**3 + memory_time**3) ** (1 / 3)
    return time


def critical_batch(peak: float, bandwidth: float, bytes_per_weight: float) -> float:
    """Tokens in flight from which a product is bound by compute [token].

    F·W / (2·B): the weights are read once, and each token needs two operations
    per weight.

    `peak` is that of the format of the multiplication. From pope-2022.

    >>> round(critical_batch(989.4e12, 3.35e12, 2), 1)
    295.3
    """
    return peak * bytes_per_weight / (2 * bandwidth)


def moe_critical_batch(
    dense_critical_batch: float, weights: float, weights_per_token: float
) -> float:
    """Tokens from which a mixture of experts is bound by compute [token]: × weights ÷ those of a token.

    All weights are read, and a token needs operations only with its own. For the experts alone, the
    ratio is that of their number to those of a token.

    >>> moe_critical_batch(300.0, 256, 8)
    9600.0
    """
    return dense_critical_batch * weights / weights_per_token


def roofline_rate(flops_per_byte: float, peak: float, bandwidth: float) -> float:
    """Highest rate at an arithmetic intensity [FLOP/s]: min(F, B·I).

    From williams-2009.

    >>> roofline_rate(100.0, 989e12, 3.35e12) / 1e12
    335.0
    """
    return min(peak, bandwidth * flops_per_byte)
