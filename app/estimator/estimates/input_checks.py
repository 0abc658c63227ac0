"""Checks of inputs that several estimates share."""

from app.estimator.common_inputs import input_error
from app.estimator.hardware.catalog import Accelerator
from app.estimator.memory.parallel_layout import tensor_parallel_problem
from app.estimator.models.architecture import Architecture


def check_tensor_parallel(model: Architecture, gpus: int) -> None:
    """Reject a number of GPUs that the heads of a model cannot be divided over."""
    if problem := tensor_parallel_problem(model, gpus):
        raise input_error("tensor_parallel", gpus, problem)


def check_gpu_rates(gpu: Accelerator, number_format: str = "bf16") -> None:
    """Reject a GPU without the rates, memory or number format that a time needs."""
    rates = (gpu.peak_rate("bf16"), gpu.memory_bandwidth)
    if None in rates or not gpu.engine_visible_memory:
        message = f"Rates and memory of the {gpu.name} are not all known."
        raise input_error("gpu", gpu.id, message)
    if gpu.peak_rate(number_format) is None:
        message = f"The {gpu.name} does not compute in {number_format.upper()}."
        raise input_error("number_format", number_format, message)
