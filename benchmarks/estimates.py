"""How long one estimate takes, for each entry of the registry, and how long to import.

Run: python -m benchmarks.estimates. Peers that are installed beside are timed in the
same run (pip install llm-analysis); none is needed.
"""

import functools
import importlib
import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from app.estimator import registry

IMPORT = (
    "import time; t = time.perf_counter(); import app.estimator.registry as r; "
    "r.list_estimates(); print((time.perf_counter() - t) * 1e3)"
)
LARGE = {
    "parallelism-plan, 405B on 16,384 GPUs": (
        "parallelism-plan",
        {"model": "llama-3.1-405b", "gpu": "h100-sxm5-80", "gpus": "16384"},
    ),
}


def main() -> int:
    print(f"{'import of the registry':42} {importing():10.1f} ms")
    for entry in registry.list_estimates():
        inputs = entry.inputs_type()
        show(entry.name, median(functools.partial(entry.compute, inputs)))
    for label, (name, typed) in LARGE.items():
        show(label, median(functools.partial(registry.run_estimate, name, typed), 3))
    for label, ask in peers().items():
        show(label, median(ask))
    return 0


def median(ask: Callable[[], object], most: int = 2000) -> float:
    """Seconds of one call: the median of up to `most` calls within a second."""
    ask()
    times: list[float] = []
    end = time.perf_counter() + 1.0
    while len(times) < most and (time.perf_counter() < end or len(times) < 3):
        begun = time.perf_counter()
        ask()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def importing() -> float:
    """Milliseconds to import the registry and every estimate in a new process."""
    runs = [
        subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
        for _ in range(5)
    ]
    return statistics.median(float(run.stdout) for run in runs)


def peers() -> dict[str, Callable[[], object]]:
    """What is installed of the peers, as a call for one training estimate."""
    found: dict[str, Callable[[], object]] = {}
    if importlib.util.find_spec("llm_analysis"):
        analysis = importlib.import_module("llm_analysis.analysis")
        found["peer: llm-analysis, training"] = lambda: analysis.train(
            model_name="decapoda-research_llama-7b-hf",
            gpu_name="a100-sxm-80gb",
            batch_size_per_gpu=1,
            total_num_tokens=1e12,
            output_dir=None,
        )
    return found


def show(label: str, seconds: float) -> None:
    print(f"{label:42} {seconds * 1e6:10.0f} µs", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
