"""An estimate small enough to check by hand, with every kind of field and picture."""

import dataclasses

from app.estimator.inputs import InputProblem, InvalidInputsError, input_field
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    BarSegment,
    Chart,
    ChartLine,
    Estimate,
    Figure,
    FormulaStep,
    OutputSpec,
    ResultTable,
    StackedBar,
    Timeline,
    TimelineSpan,
    Verdict,
    VerdictChange,
)
from app.estimator.units import format_value

_FORMATS = (("fp16", "FP16"), ("int4", "INT4"))


@dataclasses.dataclass(frozen=True, slots=True)
class SampleInputs:
    model: str = input_field("llama-3.1-8b", "Model", kind="model", group="Model", topic="weights")
    weights: str = input_field("fp16", "Weights", kind="choice", choices=_FORMATS, group="Model")
    gpu: str = input_field("h100-sxm5-80", "GPU", kind="gpu", group="Hardware", count_field="gpus")
    gpus: int = input_field(
        8, "GPUs", kind="count", unit="GPU", minimum=1, maximum=1024, group="Hardware"
    )
    overhead: float = input_field(
        4e9,
        "Overhead",
        unit="B",
        typed_unit="GB",
        minimum=0.0,
        maximum=1e12,
        help="What the engine takes for itself.",
        term="kv-cache",
        group="Hardware",
    )
    context: int = input_field(
        8192, "Context", kind="count", unit="token", minimum=1, maximum=10_000_000
    )
    paged: bool = input_field(True, "Paged cache", kind="flag")
    note: str = input_field(
        "", "Configuration", kind="text", maximum=10_000, advanced=True, group="More"
    )


def compute(inputs: SampleInputs) -> Estimate:
    if inputs.gpus == 3:
        message = "“3” GPUs cannot share 8 heads: use 1, 2, 4 or 8."
        raise InvalidInputsError((InputProblem("gpus", "3", message),))
    weights = 16e9 if inputs.weights == "fp16" else 4.5e9
    cache = inputs.context * 131072.0 * (1.0 if inputs.paged else 1.2)
    per_gpu = (weights + cache) / inputs.gpus + inputs.overhead
    capacity = 80e9
    fits = per_gpu <= capacity
    bar = StackedBar(
        "Per GPU",
        (
            BarSegment("weights", "Weights", weights / inputs.gpus),
            BarSegment("kv", "KV cache", cache / inputs.gpus),
            BarSegment("overhead", "Overhead", inputs.overhead),
        ),
        capacity,
        "H100 SXM 80GB",
    )
    chart = Chart(
        "Memory over context",
        "Context",
        "Per GPU",
        "token",
        "B",
        (ChartLine("needed", ((1.0, weights), (float(inputs.context), per_gpu))),),
    )
    timeline = Timeline(
        "One step",
        (
            TimelineSpan("GPU", "compute", 0, 0.3),
            TimelineSpan("Network", "sum", 0.1, 0.3, is_exposed=False),
        ),
    )
    return Estimate(
        name="sample",
        verdict=Verdict(
            "fits" if fits else "no",
            "Fits." if fits else "Does not fit.",
            f"Each GPU needs {format_value(per_gpu, 'B')} of its 80\u00a0GB <really>.",
        ),
        figures=(
            Figure(
                OutputSpec("per_gpu", "Needed per GPU", "B", better="less", primary=True),
                per_gpu,
            ),
            Figure(OutputSpec("free", "Free per GPU", "B", better="more"), capacity - per_gpu),
            Figure(
                OutputSpec("rate", "Tokens a second", "token/s", better="more"),
                1000.0,
                800.0,
                1300.0,
            ),
            Figure(OutputSpec("fits", "Fits", better="more"), fits),
            Figure(OutputSpec("unknown", "Price", "USD"), None, note="No price was given."),
        ),
        steps=(
            FormulaStep(
                "Weights",
                "P × 2 B ÷ N",
                f"8×10⁹ × 2 ÷ {inputs.gpus}",
                weights / inputs.gpus,
                "B",
                source="gqa-2023",
                topic="weights",
                output_name="per_gpu",
            ),
        ),
        pictures=(bar, chart, timeline),
        tables=(ResultTable("Choices", ("GPU", "Free"), (("H100", (5e9, "B")), ("=x", "no"))),),
        notes=("Overhead is assumed.",),
        changes=(VerdictChange("gpus", "GPUs", str(inputs.gpus), "1", "it does not fit"),),
    )


ENTRY = EstimateSpec(
    name="sample",
    title="Sample memory",
    summary="Does it fit?",
    group="Memory",
    inputs_type=SampleInputs,
    compute_estimate=compute,
    outputs=(OutputSpec("per_gpu", "Needed per GPU", "B", better="less"),),
    topic="weights",
)
