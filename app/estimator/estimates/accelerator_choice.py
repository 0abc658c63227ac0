"""`accelerator-choice`: inputs, result, and the input values where the verdict changes."""

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from app.estimator.common_inputs import (
    LOAD,
    cache_input,
    context_input,
    impossible_input_error,
    model_input,
    number_format_input,
    sequence_input,
    sequences_at_once_input,
    training_software_input,
    weights_input,
)
from app.estimator.estimates.composition import first_system_with_gpu
from app.estimator.estimates.inference_memory import (
    GpuMemoryUse,
    InferenceMemoryInputs,
    compute_gpu_memory_use,
    plausible_memory_range,
)
from app.estimator.estimates.layout_search import LayoutCostCache
from app.estimator.estimates.parallelism_plan import (
    ParallelismPlanInputs,
    compute_run_in_planned_layout,
)
from app.estimator.estimates.serving_capacity import PRESET_TPOT, ServingCapacityInputs
from app.estimator.estimates.training_run import (
    AllowedGpuCounts,
    find_smallest_timely_or_largest_plan,
    guess_gpus_for_run_time,
)
from app.estimator.hardware.catalog import (
    Accelerator,
    describe_gpu_count_with_sales_unit,
    find_accelerator,
    find_accelerator_id,
    find_gpu_cooling,
    find_sale_restriction,
    is_pcie_card,
    largest_sales_unit_size,
    list_accelerators,
)
from app.estimator.hardware.collectives import build_gpu_interconnect
from app.estimator.hardware.prices import typed_or_list_price_per_hour
from app.estimator.inputs import InputGroup, InvalidInputsError, input_field, input_specs
from app.estimator.memory.engine_memory import DEFAULT_ENGINE, ENGINES, EngineMemory
from app.estimator.memory.parallel_layout import (
    ServingSetup,
    filter_gpu_counts_by_quantization_blocks,
    list_tensor_parallel_sizes,
)
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import FORMATS, WeightFormat, find_weight_format
from app.estimator.result import VerdictChange
from app.estimator.serving.engine_speed import (
    MarlinPaddingShares,
    expert_marlin_padding_shares,
    find_fp8_problem,
)
from app.estimator.serving.step_time import PlacedModel, decode_step_time, place_model
from app.estimator.units import format_number, format_value, split_number_and_unit
from app.estimator.verdict_changes import is_allowed_after_rounding

_TRAINING = InputGroup("Training", "training-memory")
_ACCELERATOR = InputGroup("Accelerator", "cluster-components")
_MONEY = InputGroup("Money", "on-premises-and-cloud")

RANKS = (
    ("gpus", "Fewest GPUs"),
    ("power", "Least power"),
    ("speed", "Fastest"),
    ("cost", "Cheapest"),
)

JOBS = (("serving", "Serving"), ("training", "Training"))

VENDORS = (("any", "Any"), ("NVIDIA", "NVIDIA"), ("AMD", "AMD"))

TOPIC = "cluster-components"

_SERVED_LOAD = ServingCapacityInputs()  # Its usual load is the same.

FORMS = (("any", "Any"), ("card", "PCIe cards"), ("module", "SXM and OAM modules"))

COOLING = (("any", "Any"), ("air", "Air only"))


@dataclasses.dataclass(frozen=True, slots=True)
class AcceleratorChoiceInputs:
    job: str = input_field(
        "serving",
        "Job",
        choices=JOBS,
        help="Answering requests, or training all parameters.",
        group="Job",
        topic="training-versus-inference",
    )
    model: str = model_input()
    rank: str = input_field(
        "gpus",
        "Best is",
        choices=RANKS,
        quantity="criterion of a ranking",
        help="What the ranking looks at first.",
        group="Job",
        topic=TOPIC,
    )
    weights: str = weights_input()
    cache: str = cache_input()
    context: int = context_input(default=_SERVED_LOAD.prompt_tokens + _SERVED_LOAD.output_tokens)
    concurrent: int = sequences_at_once_input(
        default=_SERVED_LOAD.concurrent,
        help="Sequences that one copy of the model answers at the same time.",
    )
    slowest: float = LOAD.declare_input_field(
        PRESET_TPOT,
        "Slowest token",
        unit="ms",
        limits=(1e-4, 100.0),
        help="The longest time per token; preset to 50 ms. Where no GPU keeps the preset time, all "
        "are ranked, each with the number of GPUs that comes closest to it.",
        term="time-per-output-token-tpot",
    )
    tokens: float = _TRAINING.declare_advanced_input_field(
        1e12, "Tokens to train on", unit="token", limits=(1.0, 1e18), help="For training."
    )
    days: float = _TRAINING.declare_advanced_input_field(
        30 * 86400.0,
        "Time for the training",
        unit="days",
        limits=(3600.0, 1e9),
        help="Within which the tokens have to be done.",
    )
    sequence: int = sequence_input(group="Training", advanced=True)
    number_format: str = number_format_input(group="Training", advanced=True)
    software: str = training_software_input(group="Training")
    lost: float | None = _TRAINING.declare_advanced_input_field(
        None,
        "Time lost",
        unit="%",
        limits=(0.0, 0.9),
        help="Share of the booked time that is no progress: restarts, checkpoints, "
        "evaluation, slower steps; left empty: as training-time counts them.",
        topic="cluster-components",
    )
    only: str | None = _ACCELERATOR.declare_advanced_input_field(
        None,
        "Only this one",
        kind="gpu",
        help="What one GPU would take, rare ones too; left empty: all are ranked.",
    )
    vendor: str = _ACCELERATOR.declare_input_field(
        "any", "Vendor", choices=VENDORS, help="Whose GPUs are ranked."
    )
    form: str = _ACCELERATOR.declare_input_field(
        "any",
        "Form",
        choices=FORMS,
        help="Cards fit into common servers; modules sit on boards of four or eight.",
        term="sxm",
    )
    cooling: str = _ACCELERATOR.declare_input_field(
        "any",
        "Cooling",
        choices=COOLING,
        help="What the building can cool.",
        term="air-cooling",
        topic="power-and-cooling",
    )
    most_power: float | None = _ACCELERATOR.declare_advanced_input_field(
        None,
        "Power of one, at most",
        unit="W",
        limits=(10.0, 1e5),
        help="Left empty: any.",
        term="tdp",
        topic="power-and-cooling",
    )
    total_power: float | None = _ACCELERATOR.declare_advanced_input_field(
        None,
        "Power of all, at most",
        unit="kW",
        limits=(10.0, 1e9),
        help="Of the accelerators together, for example what a rack has left.",
        topic="power-and-cooling",
    )
    least_memory: float | None = _ACCELERATOR.declare_advanced_input_field(
        None,
        "Memory of one, at least",
        unit="GB",
        limits=(1e6, 1e13),
        help="Left empty: whatever the job needs.",
    )
    rare: bool = _ACCELERATOR.declare_advanced_input_field(
        False,
        "Also rare, workstation and consumer cards",
        help="Export versions, cards of one cloud, cards whose license keeps them out "
        "of data centers.",
    )
    prices: str = _MONEY.declare_advanced_input_field(
        "",
        "Prices of a GPU-hour",
        kind="text",
        maximum=600,
        help="Your offers, for example: h100 4, h200 5.2, l40s 1.1; left empty: on-demand list "
        "prices, where one is known. These rank nothing.",
    )
    budget: float | None = _MONEY.declare_advanced_input_field(
        None,
        "Budget",
        unit="USD/h",
        limits=(0.001, 1e9),
        help="For all GPUs together; needs prices.",
    )


# Systems that are planned by other rules than GPUs, so they are listed separately.
_OTHER_KINDS = frozenset({"TPU", "TSP / LPU", "LPU", "wafer-scale", "Gaudi", "Trainium"})


def list_rankable_gpus() -> tuple[Accelerator, ...]:
    return tuple(a for a in list_accelerators() if a.architecture not in _OTHER_KINDS)


def list_non_gpu_accelerators() -> tuple[Accelerator, ...]:
    return tuple(a for a in list_accelerators() if a.architecture in _OTHER_KINDS)


def find_exclusion_reason_before_sizing(inputs: AcceleratorChoiceInputs, gpu: Accelerator) -> str:
    if inputs.only not in {None, gpu.id}:
        return "Another one was asked for."
    checks = (
        _product_or_cooling_exclusion_reason,
        _power_or_memory_exclusion_reason,
        _number_format_exclusion_reason,
    )
    return next((why for check in checks if (why := check(inputs, gpu))), "")


def _product_or_cooling_exclusion_reason(inputs: AcceleratorChoiceInputs, gpu: Accelerator) -> str:
    if inputs.vendor not in {"any", gpu.vendor}:
        return f"Made by {gpu.vendor}."
    rare = find_sale_restriction(gpu)
    if rare and not (inputs.rare or inputs.only):
        return rare
    if inputs.form != "any" and (inputs.form == "card") != is_pcie_card(gpu):
        return "A module." if inputs.form == "card" else "A card."
    if inputs.cooling == "air":
        way = find_gpu_cooling(gpu.id)
        if way != "air":
            return "Cooled by liquid." if way else "Its cooling is not known here."
    return ""


def _power_or_memory_exclusion_reason(inputs: AcceleratorChoiceInputs, gpu: Accelerator) -> str:
    if inputs.most_power is not None:
        if gpu.tdp is None:
            return "Its power is not known."
        if gpu.tdp > inputs.most_power:
            return f"Draws {format_value(gpu.tdp, 'W')}."
    if not gpu.capacity:
        return "Its memory is not known."
    if inputs.least_memory is not None and gpu.capacity < inputs.least_memory:
        return f"Has {format_value(gpu.capacity, 'B')}."
    return ""


def _number_format_exclusion_reason(inputs: AcceleratorChoiceInputs, gpu: Accelerator) -> str:
    form, model, reason = FORMATS["bf16"], find_model(inputs.model), None
    if inputs.job != "training":
        form = find_weight_format(model, inputs.weights)
        reason = find_fp8_problem(gpu, form, "vllm", has_experts=model.is_routed)
    if not reason and (form.math == "fp8" or not gpu.lacks_format(form.id)):
        return ""
    return f"Cannot compute in {form.label}. {reason or ''}".strip()


def parse_hourly_prices_by_gpu(inputs: AcceleratorChoiceInputs) -> Mapping[str, float]:
    """Return the typed prices [USD/h] by GPU id; raises InvalidInputsError for invalid ones.

    Ranking by cost and a budget require at least one price.
    """
    prices: dict[str, float] = {}
    for part in filter(
        None, (p.strip() for p in inputs.prices.replace(";", ",").replace("\n", ",").split(","))
    ):
        name, _, price = part.rpartition(" ") if " " in part else part.rpartition("=")
        try:
            key = find_accelerator_id(name.strip(" =:"))
            prices[key] = split_number_and_unit(price.strip(" =:$")).number
        except (LookupError, ValueError) as error:
            message = f"“{part}” is not an accelerator and its price: {error.args[0]}"
            raise impossible_input_error("prices", part, f"{message.rstrip('.')}.") from None
        if not 0 < prices[key] < 1e6:
            raise impossible_input_error("prices", part, f"The price in “{part}” must lie above 0.")
    if not prices and (inputs.budget is not None or inputs.rank == "cost"):
        what = "Ranking by cost" if inputs.rank == "cost" else "A budget"
        raise impossible_input_error(
            "prices", inputs.prices, f"{what} needs prices, such as h100 4."
        )
    return prices


@dataclasses.dataclass(frozen=True, slots=True)
class GpuCandidate:
    """An accelerator that can do the job.

    The time per output token is that of serving, the GPU-hours are those of a whole training;
    each is None for the other job, and if the rates of the GPU are not known. `productive_time_share` is
    the share of the time of a training that is progress, `hfu` that of the peak in its steps.
    """

    gpu: Accelerator
    gpu_count: int
    needed_bytes_per_gpu: float
    seconds_per_token: float | None
    gpu_hours: float | None
    hourly_price_per_gpu: float | None
    productive_time_share: float = 1.0
    hfu: float = 0.0

    @property
    def power_of_all_gpus(self) -> float | None:
        """Return the highest power of all GPUs [W]."""
        return None if self.gpu.tdp is None else self.gpu.tdp * self.gpu_count

    @property
    def gpu_hours_or_seconds_per_token(self) -> float | None:
        """Return the time to compare: GPU-hours of training, or seconds of a token in serving."""
        return self.seconds_per_token if self.gpu_hours is None else self.gpu_hours

    @property
    def hourly_cost(self) -> float | None:
        return (
            None
            if self.hourly_price_per_gpu is None
            else self.hourly_price_per_gpu * self.gpu_count
        )

    @property
    def training_or_hourly_cost(self) -> float | None:
        """Return the cost to compare: the training [USD], or an hour of serving [USD/h].

        An hour on few slow GPUs is cheap, but the training needs more of those hours.
        """
        if self.hourly_price_per_gpu is None or self.gpu_hours is None:
            return self.hourly_cost
        return self.hourly_price_per_gpu * self.gpu_hours


class ExcludedGpu(NamedTuple):
    gpu: Accelerator
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class GpuRanking:
    """Candidates, best first, the excluded GPUs, and the memory use of the best by their number.

    `all_miss_preset_token_time`: no GPU keeps the preset time per token, so that slower ones are candidates.
    """

    inputs: AcceleratorChoiceInputs
    model: Architecture
    candidates_best_first: tuple[GpuCandidate, ...]
    excluded: tuple[ExcludedGpu, ...]
    memory_on_best_gpu_by_count: Mapping[int, GpuMemoryUse]
    all_miss_preset_token_time: bool = False

    @property
    def best(self) -> GpuCandidate | None:
        return self.candidates_best_first[0] if self.candidates_best_first else None


USABLE_MEMORY_SHARE = 0.9  # What an engine may use.

# Model states of mixed-precision AdamW [B per parameter], and the share of memory that they
# take on the fewest GPUs that are tried; activations need the rest.
STATE_BYTES, MEMORY_SHARE_FOR_STATES = 16.0, 0.6

_GPUS_OF_SERVER = 8


def rank_gpus(
    inputs: AcceleratorChoiceInputs, gpus: Iterable[Accelerator] | None = None
) -> GpuRanking:
    """Evaluate every GPU, or these; raises InvalidInputsError for invalid or missing prices.

    A time per token that nobody set leaves out no GPU if none keeps it.
    """
    ranking = _rank_gpus_without_relaxing_targets(inputs, gpus)
    if ranking.best or inputs.job != "serving" or inputs.slowest != PRESET_TPOT:
        return ranking
    slower = _rank_gpus_without_relaxing_targets(
        dataclasses.replace(inputs, slowest=math.inf), gpus
    )
    if not slower.best:
        return ranking
    return dataclasses.replace(slower, inputs=inputs, all_miss_preset_token_time=True)


def _rank_gpus_without_relaxing_targets(
    inputs: AcceleratorChoiceInputs, gpus: Iterable[Accelerator] | None
) -> GpuRanking:
    model = find_model(inputs.model)
    prices = parse_hourly_prices_by_gpu(inputs)
    memory_by_group = (
        _memory_by_traits_and_gpu_count(inputs, model) if inputs.job == "serving" else {}
    )
    form = find_weight_format(model, inputs.weights)
    candidates: list[GpuCandidate] = []
    excluded: list[ExcludedGpu] = []
    for gpu in list_rankable_gpus() if gpus is None else gpus:
        why = find_exclusion_reason_before_sizing(inputs, gpu)
        price = prices.get(gpu.id) if prices else typed_or_list_price_per_hour(gpu, None)
        memory = memory_by_group.get(_memory_traits_of_gpu(gpu, form), {})
        tried = why or _find_candidate_or_exclusion_reason(inputs, model, gpu, memory, price)
        if isinstance(tried, str):
            excluded.append(ExcludedGpu(gpu, tried))
        else:
            candidates.append(tried)
    candidates.sort(key=lambda c: _ranking_key(inputs.rank, c))
    best = (
        memory_by_group.get(_memory_traits_of_gpu(candidates[0].gpu, form), {})
        if candidates
        else {}
    )
    return GpuRanking(inputs, model, tuple(candidates), tuple(excluded), best)


class GpuMemoryTraits(NamedTuple):
    """What of a GPU decides how much of its memory a model takes.

    What the engine adds to experts on it, and what the engine's defaults on it use.
    """

    expert_padding: MarlinPaddingShares
    engine_memory: EngineMemory


def _memory_traits_of_gpu(gpu: Accelerator, weight_format: WeightFormat) -> GpuMemoryTraits:
    engine = ENGINES[DEFAULT_ENGINE].with_defaults_for_gpu(gpu.name, gpu.capacity)
    return GpuMemoryTraits(expert_marlin_padding_shares(gpu, weight_format, DEFAULT_ENGINE), engine)


def _memory_by_traits_and_gpu_count(
    inputs: AcceleratorChoiceInputs, model: Architecture
) -> dict[GpuMemoryTraits, dict[int, GpuMemoryUse]]:
    """Return the memory use on an example of each kind of GPU."""
    form = find_weight_format(model, inputs.weights)
    examples = {_memory_traits_of_gpu(gpu, form): gpu for gpu in list_rankable_gpus()}
    return {
        kind: _inference_memory_by_gpu_count(inputs, model, gpu) for kind, gpu in examples.items()
    }


def _inference_memory_by_gpu_count(
    inputs: AcceleratorChoiceInputs, model: Architecture, gpu: Accelerator
) -> dict[int, GpuMemoryUse]:
    memory = InferenceMemoryInputs(
        model=inputs.model,
        gpu=gpu.id,
        weights=inputs.weights,
        cache=inputs.cache,
        context=inputs.context,
        concurrent=inputs.concurrent,
    )
    counts = filter_gpu_counts_by_quantization_blocks(
        model, inputs.weights, list_tensor_parallel_sizes(model, 72)
    )
    return {n: compute_gpu_memory_use(model, memory, n) for n in counts}


def lacking_bytes_of_best_at_upper_bound(result: GpuRanking) -> float:
    """Return what each of the best GPUs lacks by the upper end of the memory; 0 if nothing [B]."""
    best = result.best
    if best is None or result.inputs.job == "training":
        return 0.0
    inputs = InferenceMemoryInputs(model=result.inputs.model, gpu=best.gpu.id)
    _, most = plausible_memory_range(inputs, result.memory_on_best_gpu_by_count[best.gpu_count])
    return max(0.0, most - best.gpu.capacity * USABLE_MEMORY_SHARE)


def _ranking_key(criterion: str, candidate: GpuCandidate) -> tuple[float, ...]:
    """Return the sort key of the ranking; unknown values come last, NVIDIA's first of equals."""
    power = math.inf if candidate.power_of_all_gpus is None else candidate.power_of_all_gpus
    time = (
        math.inf
        if candidate.gpu_hours_or_seconds_per_token is None
        else candidate.gpu_hours_or_seconds_per_token
    )
    cost = (
        math.inf if candidate.training_or_hourly_cost is None else candidate.training_or_hourly_cost
    )
    first = {"gpus": candidate.gpu_count, "power": power, "speed": time, "cost": cost}[criterion]
    maker = 0 if candidate.gpu.vendor == "NVIDIA" else 1
    unknown = float(math.isinf(time))
    return (
        unknown,
        first,
        candidate.gpu_count,
        maker,
        power,
        time,
        -(candidate.gpu.launch_year or 0),
    )


def _find_candidate_or_exclusion_reason(
    inputs: AcceleratorChoiceInputs,
    model: Architecture,
    gpu: Accelerator,
    memory_by_gpu_count: Mapping[int, GpuMemoryUse],
    hourly_price_per_gpu: float | None,
) -> GpuCandidate | str:
    """Return the fewest GPUs that can do the job, or the reason why none can."""
    if inputs.budget is not None and hourly_price_per_gpu is None:
        return "No price was given for it."
    if inputs.job == "training":
        tried = _find_training_candidate_or_reason(inputs, gpu, hourly_price_per_gpu)
    else:
        tried = _find_serving_candidate_or_reason(
            inputs, model, gpu, memory_by_gpu_count, hourly_price_per_gpu
        )
    if isinstance(tried, str):
        return tried
    return _power_or_budget_exclusion_reason(inputs, tried) or tried


def _power_or_budget_exclusion_reason(
    inputs: AcceleratorChoiceInputs, candidate: GpuCandidate
) -> str:
    count = format_value(candidate.gpu_count, "GPU")
    if inputs.total_power is not None:
        if candidate.power_of_all_gpus is None:
            return "Its power is not known."
        if candidate.power_of_all_gpus > inputs.total_power:
            return f"{count} draw {format_value(candidate.power_of_all_gpus, 'W')}."
    cost = candidate.hourly_cost
    if inputs.budget is not None and cost is not None and cost > inputs.budget:
        return f"{count} cost {format_value(cost, 'USD/h')}."
    return ""


def _find_serving_candidate_or_reason(
    inputs: AcceleratorChoiceInputs,
    model: Architecture,
    gpu: Accelerator,
    memory_by_gpu_count: Mapping[int, GpuMemoryUse],
    hourly_price_per_gpu: float | None,
) -> GpuCandidate | str:
    limit = gpu.capacity * USABLE_MEMORY_SHARE
    most = 72 if "72" in gpu.interconnect else _GPUS_OF_SERVER  # With fast links.
    why = ""
    slower: list[GpuCandidate] = []
    for count, memory_use in memory_by_gpu_count.items():
        if count > most:
            break
        if memory_use.total > limit:
            continue
        seconds = seconds_per_token_on_gpus(inputs, model, gpu, count)
        candidate = GpuCandidate(gpu, count, memory_use.total, seconds, None, hourly_price_per_gpu)
        if seconds is None or (seconds <= inputs.slowest < math.inf):
            return candidate
        slower.append(candidate)
        preset = f", not the preset {format_value(PRESET_TPOT, 's')}"
        is_preset = inputs.slowest == PRESET_TPOT
        why = f"{format_value(seconds, 's')} for a token on {count}{preset if is_preset else ''}."
    if slower and math.isinf(inputs.slowest):
        return min(slower, key=lambda candidate: candidate.seconds_per_token or 0.0)
    return why or f"Does not fit on {most} in one domain."


def seconds_per_token_on_gpus(
    inputs: AcceleratorChoiceInputs, model: Architecture, gpu: Accelerator, count: int
) -> float | None:
    """Time for one token of every sequence [s]; None if rates are unknown."""
    placed = place_on_gpus(inputs, model, gpu, count)
    return decode_step_time(placed, inputs.concurrent, inputs.context).total if placed else None


def place_on_gpus(
    inputs: AcceleratorChoiceInputs, model: Architecture, gpu: Accelerator, count: int
) -> PlacedModel | None:
    """Return one copy of the model on these GPUs; None if their rates are unknown."""
    serving = ServingSetup(
        weight_format=inputs.weights,
        cache_format=inputs.cache,
        tensor_parallel=count,
        gpus_per_expert=count,
    )
    try:
        return place_model(model, gpu, build_gpu_interconnect(gpu), serving)
    except ValueError:
        return None


class TimedTrainingOnGpus(NamedTuple):
    """The training in the layout that a training run has on this number of GPUs.

    `run_time` is that of the whole run, infinite if no layout fits; `run_time_without_losses` is without
    what is lost.
    """

    gpus: int
    memory_per_gpu: float = 0.0
    run_time: float = math.inf
    run_time_without_losses: float = math.inf
    hfu: float = 0.0


def _time_training_on_gpus(
    inputs: ParallelismPlanInputs, cost_cache: LayoutCostCache
) -> TimedTrainingOnGpus:
    model, gpu = find_model(inputs.model), find_accelerator(inputs.gpu)
    try:
        run = compute_run_in_planned_layout(inputs, model, gpu, cost_cache)
    except InvalidInputsError:  # Failures leave no time to work.
        run = None
    if run is None:
        return TimedTrainingOnGpus(inputs.gpus)
    return TimedTrainingOnGpus(
        inputs.gpus, run.memory_per_gpu, run.run_seconds, run.run_seconds_without_losses, run.hfu
    )


def gpus_of_system(gpu: Accelerator) -> int:
    """Return how many of a GPU are in a system, or are sold together; trainings have multiples."""
    system = first_system_with_gpu(gpu)
    return system.gpus if system else largest_sales_unit_size(gpu)


@functools.lru_cache(maxsize=256)
def _find_training_on_fewest_gpus(
    inputs: ParallelismPlanInputs, max_run_seconds: float, typed_lost_share: float | None
) -> TimedTrainingOnGpus:
    """Return the training on the fewest GPUs that take no longer than the limit [s].

    `typed_lost_share` is the typed share of time that is no progress. Raises ValueError or TypeError if the
    rates of the GPU are not known.
    """
    model, gpu, costs = find_model(inputs.model), find_accelerator(inputs.gpu), LayoutCostCache()

    def train(gpus: int) -> TimedTrainingOnGpus:
        training = _time_training_on_gpus(dataclasses.replace(inputs, gpus=gpus), costs)
        if typed_lost_share is None:
            return training
        return training._replace(run_time=training.run_time_without_losses / (1 - typed_lost_share))

    counts = AllowedGpuCounts(
        gpus_of_system(gpu),
        minimum=model.parameters * STATE_BYTES / (gpu.capacity * MEMORY_SHARE_FOR_STATES),
    )
    first = counts.round_up_to_allowed_count(guess_gpus_for_run_time(inputs, max_run_seconds))
    return find_smallest_timely_or_largest_plan(
        train, {first: train(first)}, first, counts, max_run_seconds
    )


def _find_training_candidate_or_reason(
    inputs: AcceleratorChoiceInputs, gpu: Accelerator, hourly_price_per_gpu: float | None
) -> GpuCandidate | str:
    """Return the fewest GPUs that train in time, found as a training run finds them."""
    if gpu.dense_peak_rate(inputs.number_format) is None and inputs.number_format != "bf16":
        return f"It does not compute in {inputs.number_format.upper()}."
    plan_inputs = ParallelismPlanInputs(
        model=inputs.model,
        gpu=gpu.id,
        tokens=inputs.tokens,
        sequence=inputs.sequence,
        number_format=inputs.number_format,
        software=inputs.software,
    )

    try:
        found = _find_training_on_fewest_gpus(plan_inputs, inputs.days, inputs.lost)
    except (ValueError, TypeError):
        return "Its 16-bit rate is not published, so its speed is not known."
    count = format_value(found.gpus, "GPU")
    if math.isinf(found.run_time):
        return f"No layout fits on {count}."
    if found.run_time > inputs.days:
        verb = "take" if found.gpus > 1 else "takes"
        return f"{count} {verb} {format_value(found.run_time, 's')}."
    hours = found.run_time * found.gpus / 3600
    useful_share = found.run_time_without_losses / found.run_time
    return GpuCandidate(
        gpu,
        found.gpus,
        found.memory_per_gpu,
        None,
        hours,
        hourly_price_per_gpu,
        useful_share,
        found.hfu,
    )


def find_verdict_changes(result: GpuRanking) -> tuple[VerdictChange, ...]:
    """Return nearby input values for which another GPU is the best.

    For training, only those are tried that are among the first now.
    """
    changes = []
    gpus = None
    if result.inputs.job == "training":
        gpus = [candidate.gpu for candidate in result.candidates_best_first[:_FRONT_RUNNERS]]
    for variation in _list_input_variations(result):
        changed: dict[str, Any] = {variation.field: variation.value}
        try:
            other = rank_gpus(dataclasses.replace(result.inputs, **changed), gpus)
        except InvalidInputsError:
            continue
        best = _describe_best(other)
        if best != _describe_best(result):
            label = input_specs(AcceleratorChoiceInputs)[variation.field].label
            now, then = variation.current_text, variation.varied_text
            changes.append(VerdictChange(variation.field, label, now, then, best))
    return tuple(changes)


_FRONT_RUNNERS = 5


def say_that_no_gpu_does_it(inputs: AcceleratorChoiceInputs) -> str:
    if inputs.only:
        return f"No number of {find_accelerator(inputs.only).name} that is tried does it."
    return "No GPU of the catalog does it."


def _describe_best(result: GpuRanking) -> str:
    best = result.best
    if best is None:
        return say_that_no_gpu_does_it(result.inputs)
    return f"{describe_gpu_count_with_sales_unit(best.gpu, best.gpu_count)}."


class InputVariation(NamedTuple):
    """Another value of an input; the texts show the current value and this one."""

    field: str
    value: Any
    current_text: str
    varied_text: str


def _list_input_variations(result: GpuRanking) -> tuple[InputVariation, ...]:
    inputs = result.inputs
    best = result.best
    if inputs.job == "training":
        return _half_deadline_variation(inputs)
    tries: list[InputVariation] = []
    if best is not None:
        tries += _find_unfit_concurrency_variation(result, best)
    form = find_weight_format(result.model, inputs.weights)
    lighter = {"bf16": "fp8", "fp16": "fp8", "fp8": "int4"}.get(form.id)
    if best is None:
        now, value = f"{format_number(inputs.slowest * 1e3)} ms", inputs.slowest * 4
        then = f"{format_number(value * 1e3)} ms"
        limit = min(value, 100.0)
        tries.append(InputVariation("slowest", limit, now, then))
    if lighter:
        now, then = form.label, FORMATS[lighter].label
        tries.append(InputVariation("weights", lighter, now, then))
    return tuple(tries)


def _half_deadline_variation(inputs: AcceleratorChoiceInputs) -> tuple[InputVariation, ...]:
    now = format_value(inputs.days, "s").replace("\u00a0", " ")
    half = inputs.days / 2
    if not is_allowed_after_rounding(type(inputs), "days", half):
        return ()
    days = f"{format_number(half / 86400)} days"
    return (InputVariation("days", half, now, days),)


def _find_unfit_concurrency_variation(
    result: GpuRanking, best: GpuCandidate
) -> tuple[InputVariation, ...]:
    """Return the first number of sequences that no longer fits on the best GPUs."""
    inputs = result.inputs
    memory_use = result.memory_on_best_gpu_by_count[best.gpu_count]
    free = best.gpu.capacity * USABLE_MEMORY_SHARE - memory_use.bytes_without_cache
    each = memory_use.cache / inputs.concurrent
    if each <= 0 or free <= 0:
        return ()
    more = max(int(free // each), inputs.concurrent) + 1
    if more > 1_000_000:
        return ()
    now, then = format_number(inputs.concurrent), format_number(more)
    return (InputVariation("concurrent", more, now, then),)
