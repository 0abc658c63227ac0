"""The measurements that a serving time rests on, and the range that follows from them."""

import dataclasses

from app.estimator import data_files
from app.estimator.models.architecture import Architecture
from app.estimator.serving.step_time import PlacedModel

# Fewer measurements of a setup than this say nothing about its range.
_FEWEST = 4
_FAMILIES = {
    "dense": "dense models",
    "routed": "mixtures of experts",
    "latent": "latent attention",
    "hybrid": "hybrids of attention and recurrent layers",
}
_GPUS = {"one": "one GPU", "several": "several GPUs", "nodes": "several servers"}


@dataclasses.dataclass(frozen=True, slots=True)
class MeasurementCounts:
    """Published measurements of setups like this one: how many, and of what."""

    count: int
    setup: str

    @property
    def enough(self) -> bool:
        return self.count >= _FEWEST

    @property
    def note(self) -> str:
        """Return a sentence on what the ranges rest on."""
        if self.enough:
            return f"Ranges rest on {self.count} measurements of {self.setup}."
        few = f"only {self.count}" if self.count else "no"
        noun = "measurement" if self.count == 1 else "measurements"
        return f"There are {few} {noun} of {self.setup} yet, so the ranges are wider."

    def kind(self, name: str) -> str:
        """Return the error interval of a time: wider if nothing like it was measured."""
        return name if self.enough else f"{name}-unmeasured"


def model_family(model: Architecture) -> str:
    """Return what kind of model this is for an engine.

    >>> from app.estimator.models.lookup import find_model
    >>> [model_family(find_model(m)) for m in ("llama-3-8b", "mixtral-8x7b", "deepseek-v3")]
    ['dense', 'routed', 'latent']
    """
    mixers = [layer.mixer for layer, _ in model.runs]
    if any(mixer.state for mixer in mixers):
        return "hybrid"
    if any(mixer.kind == "latent" for mixer in mixers):
        return "latent"
    return "routed" if model.is_routed else "dense"


def setup_key(placed: PlacedModel) -> tuple[str, str, str, str]:
    """Return kernels of the GPU, engine, family of the model, and spread over GPUs."""
    gpus = placed.serving.gpus
    spread = "one" if gpus == 1 else "several"
    if gpus > placed.fabric.domain:
        spread = "nodes"
    return placed.rates.kernels, placed.engine.id, model_family(placed.model), spread


def find_measurements(placed: PlacedModel) -> MeasurementCounts:
    """Return the measurements of setups like this one.

    >>> from app.estimator.models.lookup import find_model
    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> from app.estimator.hardware.collectives import gpu_interconnect
    >>> from app.estimator.serving.engine import ServingSetup
    >>> from app.estimator.serving.step_time import place_model
    >>> def measured(gpu: str) -> MeasurementCounts:
    ...     card, setup = find_accelerator(gpu), ServingSetup(software="vllm")
    ...     return find_measurements(
    ...         place_model(find_model("llama-3-8b"), card, gpu_interconnect(card), setup))
    >>> measured("H100").enough, measured("L40S").note
    (True, 'There are no measurements of vLLM with dense models on one GPU of Ada Lovelace yet, so the ranges are wider.')
    """
    key = setup_key(placed)
    counts = data_files.load_toml("measurements.toml")
    setup = (
        f"{placed.engine.label} with {_FAMILIES[key[2]]} on {_GPUS[key[3]]} "
        f"of {placed.gpu.architecture}"
    )
    return MeasurementCounts(counts.get(" ".join(key), 0), setup)
