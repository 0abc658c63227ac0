"""Fit the overheads of inference engines to published measurements.

Run: python -m evidence.fit_serving [--check]. Fits the constants of `[[steps]]` and of
the engines in the estimator's engines.toml to the cases of cases-serving.json that are
marked for fitting. Then leaves out every model, every accelerator and every source in
turn, fits the constants again, and writes the errors on the left-out cases to
data/held-out-serving.json for the accuracy report. With --check nothing is written.

Residuals are logarithms of predicted over measured values. Those of the time to first
token have weight 0.6, because they vary more between repeated runs. A group of cases of
one model, engine and accelerator has the weight of the square root of its size. Large
residuals count linearly (soft L1). Each constant has a prior from operator tables and
earlier fits (`PRIORS`), so that constants that the cases do not determine stay there.
"""

import dataclasses
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from app.estimator import data_files as catalogue
from app.estimator.estimates.latency import (
    LatencyInputs,
    fill_in_formats_and_gpus,
    place_requested_model,
)
from app.estimator.estimates.serving_capacity import ServingCapacityInputs, build_serving_setup
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.hardware.collectives import Interconnect, build_gpu_interconnect
from app.estimator.inputs import parse_inputs
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.serving.engine_speed import (
    EngineConstants,
    find_engine_speed,
    load_shared_engine_constants,
)
from app.estimator.serving.replica import (
    BatchTiming,
    EqualRounds,
    RequestLengths,
    RequestPattern,
    mean_step_time,
    median_ttft_on_idle_replica,
    median_ttft_under_load,
    min_mixed_step_time,
    profile_replica_by_batch,
    split_run_into_rounds,
    step_time_added_by_prompt,
)
from app.estimator.serving.step_time import (
    PlacedModel,
    classify_setup,
    decode_step_time,
    place_model,
)
from evidence import DATA
from evidence.accuracy.cases import CaseFile, ReferenceCase, read_cases
from evidence.accuracy.held_out import (
    GROUPS,
    CaseGroups,
    ErrorOfCase,
    HeldOutErrors,
    summarize_refit_errors,
)
from evidence.accuracy.question import CalculatorQuery
from evidence.accuracy.report import groups_of, translate

CASES = DATA / "cases-serving.json"
HELD_OUT = DATA / "held-out-serving.json"
ENGINES = catalogue.DATA / "engines.toml"
MEASUREMENTS = catalogue.DATA / "measurements.toml"
# The fitted constants, in the units of engines.toml, with their priors.
_ENGINE_PRIORS = {
    "vllm": {"kernel_us": 5.3, "prefill": 1.2, "eager_us": 20.0, "grouped": 0.4},
    "trtllm": {"kernel_us": 3.9, "prefill": 1.03, "eager_us": 20.0, "grouped": 0.42},
    "sglang": {"kernel_us": 6.75, "prefill": 2.0, "eager_us": 50.0, "grouped": 0.2},
}
_SHARED_PRIORS = {"routed_us": 31.0, "padding": 17.0, "skew": 0.77}
_SHARED_PRIORS |= {"waits": 1.5, "others": 0.13, "spread": 0.17}
PRIORS = {
    **{f"{engine}.{name}": v for engine, row in _ENGINE_PRIORS.items() for name, v in row.items()},
    **{f"all.{name}": value for name, value in _SHARED_PRIORS.items()},
}
TTFT_WEIGHT = 0.6
LINEAR_FROM = 0.15  # Residuals above this value count linearly.
PRIOR_STRENGTH = 0.3  # Strength of the priors, per factor of e.
MOST_STEPS, SLOPE_PROBE, LONGEST_STEP = 12, 0.02, 0.7

Constants = dict[str, float]


@dataclasses.dataclass(frozen=True, slots=True)
class FitCase:
    """One case as input of the fit."""

    kind: str
    expected: float
    fitted: bool
    groups: CaseGroups
    inputs: ServingCapacityInputs
    model: Architecture
    gpu: Accelerator
    fabric: Interconnect
    rounds: tuple[EqualRounds, ...]

    @property
    def traffic(self) -> RequestPattern:
        """Return the lengths with their variation."""
        inputs = self.inputs
        lengths = RequestLengths(inputs.prompt_tokens, inputs.output_tokens)
        return RequestPattern(lengths, inputs.prompt_variation, inputs.answer_variation)


def prepare_fit_case(case: ReferenceCase, file: CaseFile) -> FitCase:
    """Prepare a case: everything that does not depend on the constants."""
    query = translate(case, file)
    if not isinstance(query, CalculatorQuery):
        raise TypeError(f"{case.id} is not asked of a calculator")
    inputs = parse_inputs(ServingCapacityInputs, query.typed)
    gpu, model = find_accelerator(inputs.gpu), find_model(inputs.model)
    # Llama 3.1 and 3.3 have the same shape, so they count as one model.
    shape = f"{model.layers} layers of {model.hidden}, {model.vocabulary} words"
    fabric = build_gpu_interconnect(gpu, inputs.network_rate, gpus_per_domain=inputs.domain or 0)
    batches = [EqualRounds(1.0, float(inputs.concurrent))]
    if case.kind == "offline_throughput":
        traffic = RequestPattern(RequestLengths(inputs.prompt_tokens, inputs.output_tokens))
        placed = place_model(model, gpu, fabric, build_serving_setup(inputs))
        full = max(
            1.0,
            profile_replica_by_batch(placed, traffic, inputs.memory_utilization).max_reserved_batch,
        )
        run = (inputs.run_requests or full) / (inputs.replicas or 1)
        batches = split_run_into_rounds(run, full)
    return FitCase(
        kind=case.kind,
        expected=case.expected,
        fitted=case.calibration,
        groups=CaseGroups(shape, gpu.id, groups_of(case).source),
        inputs=inputs,
        model=model,
        gpu=gpu,
        fabric=fabric,
        rounds=tuple(batches),
    )


def engine_with_constants(engine: str, constants: Constants) -> EngineConstants:
    of = {name: constants[f"{engine}.{name}"] for name in _ENGINE_PRIORS[engine]}
    common = {name: constants[f"all.{name}"] for name in _SHARED_PRIORS}
    own = dataclasses.replace(
        find_engine_speed(engine),
        launch_seconds_per_kernel=of["kernel_us"] * 1e-6,
        prefill_time_factor=of["prefill"],
        grouped_matmul_factor=of["grouped"],
        launch_seconds_per_eager_kernel=of["eager_us"] * 1e-6,
    )
    shared = dataclasses.replace(
        load_shared_engine_constants(),
        extra_seconds_per_routed_layer=common["routed_us"] * 1e-6,
        padding_rows_per_expert=common["padding"],
        routing_skew=common["skew"],
        extra_steps_before_first_token=common["waits"],
        other_prompts_factor=common["others"],
        synchrony_decay_scale=common["spread"],
    )
    return EngineConstants(own, shared)


def predict(row: FitCase, constants: Constants) -> float:
    fitted = engine_with_constants(row.inputs.engine, constants)
    placed = place_model(row.model, row.gpu, row.fabric, build_serving_setup(row.inputs), fitted)
    answer = row.inputs.output_tokens
    requests = seconds = 0.0
    for count, batch in row.rounds:
        own = max(1.0, batch / row.inputs.attention_parallel)
        timed = _time_batch(placed, row.traffic, own)
        first = median_ttft_under_load(
            placed, timed, row.traffic, median_ttft_on_idle_replica(placed, row.traffic)
        )
        each = mean_step_time(timed, (own - 1) / max(1.0, answer))
        if row.kind in ("serving_ttft", "serving_tpot"):
            return first if row.kind == "serving_ttft" else each
        requests += count * batch
        seconds += count * (first + answer * each)
    return requests * (row.inputs.replicas or 1) * answer / seconds


def _time_batch(placed: PlacedModel, traffic: RequestPattern, batch: float) -> BatchTiming:
    """Return the timing of a GPU group at one batch size, without profile curves."""
    step = recorded = decode_step_time(placed, batch, traffic.mean_context_of_running_sequence)
    filled = placed.engine.pad_to_cuda_graph_batch(batch)
    if filled > batch:
        recorded = decode_step_time(placed, filled, traffic.mean_context_of_running_sequence)
    cost = step_time_added_by_prompt(placed, traffic, batch, step.total)
    alone = recorded.total - recorded.request_dependent_time + step.request_dependent_time
    launching = min_mixed_step_time(placed, step.total)
    return BatchTiming(step.total, cost, batch, alone, launching)


def fit_constants(rows: Sequence[FitCase], start: Constants = PRIORS) -> Constants:
    """Fit the constants to the rows by damped Gauss-Newton steps."""
    setups = [(r.groups.model, r.groups.accelerator, r.inputs.engine) for r in rows]
    rows_of_setup = Counter(setups)
    weights = [
        rows_of_setup[setup] ** -0.5 * (TTFT_WEIGHT if row.kind == "serving_ttft" else 1.0)
        for row, setup in zip(rows, setups, strict=True)
    ]
    best = _evaluate_fit(rows, weights, dict(start))
    damping = 1e-3
    for _ in range(MOST_STEPS):
        step = _gauss_newton_step(rows, weights, best, damping)
        moved = {name: best.constants[name] * math.exp(by) for name, by in step.items()}
        tried = _evaluate_fit(rows, weights, moved)
        if tried.cost < best.cost:
            is_done = best.cost - tried.cost < 1e-4 * best.cost
            best, damping = tried, damping / 3
            if is_done:
                break
        else:
            damping *= 10
    return best.constants


class Fit(NamedTuple):
    """Constants, the residual of each case with them, and the sum that is minimized."""

    constants: Constants
    residuals: list[float]
    cost: float


def _evaluate_fit(rows: Sequence[FitCase], weights: Sequence[float], constants: Constants) -> Fit:
    residuals = [math.log(predict(row, constants) / row.expected) for row in rows]
    cost_of_cases = sum(
        w * w * 2 * LINEAR_FROM**2 * (math.sqrt(1 + (r / LINEAR_FROM) ** 2) - 1)
        for r, w in zip(residuals, weights, strict=True)
    )
    cost_of_priors = sum(
        (PRIOR_STRENGTH * math.log(v / PRIORS[k])) ** 2 for k, v in constants.items()
    )
    return Fit(constants, residuals, cost_of_cases + cost_of_priors)


def _gauss_newton_step(
    rows: Sequence[FitCase],
    weights: Sequence[float],
    best: Fit,
    damping: float,
) -> Constants:
    """Return the next step: changes of the logarithms of the constants."""
    now, residuals = best.constants, best.residuals
    names = list(now)
    slopes = []
    for name in names:
        moved = now | {name: now[name] * math.exp(SLOPE_PROBE)}
        slopes.append(
            [_residual_slope(r, a, name, moved) for r, a in zip(rows, residuals, strict=True)]
        )
    trust = [
        w * w / math.sqrt(1 + (r / LINEAR_FROM) ** 2)
        for r, w in zip(residuals, weights, strict=True)
    ]
    matrix = [[_weighted_product(a, b, trust) for b in slopes] for a in slopes]
    right = [-_weighted_product(a, residuals, trust) for a in slopes]
    for i, name in enumerate(names):
        matrix[i][i] = matrix[i][i] * (1 + damping) + PRIOR_STRENGTH**2
        right[i] -= PRIOR_STRENGTH**2 * math.log(now[name] / PRIORS[name])
    found = solve_linear_system(matrix, right)
    longest = max(LONGEST_STEP, *map(abs, found)) / LONGEST_STEP
    return {name: by / longest for name, by in zip(names, found, strict=True)}


def _residual_slope(row: FitCase, here: float, name: str, moved: Constants) -> float:
    """Return the change of a residual with one constant; 0 if it belongs to another engine."""
    if not name.startswith(("all.", f"{row.inputs.engine}.")):
        return 0.0
    return (math.log(predict(row, moved) / row.expected) - here) / SLOPE_PROBE


def _weighted_product(a: Iterable[float], b: Iterable[float], weights: Iterable[float]) -> float:
    return sum(x * y * w for x, y, w in zip(a, b, weights, strict=True))


def solve_linear_system(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a positive definite linear system by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for i in range(size):
        for j in range(i + 1, size):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [b - factor * a for a, b in zip(rows[i], rows[j], strict=True)]
    found = [0.0] * size
    for i in reversed(range(size)):
        known = sum(rows[i][j] * found[j] for j in range(i + 1, size))
        found[i] = (rows[i][size] - known) / rows[i][i]
    return found


def cross_validate_constants(rows: Sequence[FitCase], whole: Constants) -> list[HeldOutErrors]:
    """Return errors on each group with constants fitted without it."""
    fitted = [_log_ratio(row, whole) for row in rows]
    found = []
    for group in GROUPS:
        names = [getattr(row.groups, group) for row in rows]
        unseen = list(fitted)  # Groups that the fit has not seen.
        for left_out in sorted({n for n, row in zip(names, rows, strict=True) if row.fitted}):
            others = (r for r, n in zip(rows, names, strict=True) if r.fitted and n != left_out)
            constants = fit_constants(list(others), whole)
            for i, row in enumerate(rows):
                if names[i] == left_out:
                    unseen[i] = _log_ratio(row, constants)
        for kind in sorted({row.kind for row in rows}):
            which = [i for i, row in enumerate(rows) if row.kind == kind]
            if len({names[i] for i in which}) > 1:
                errors = [ErrorOfCase(unseen[i], rows[i].groups) for i in which]
                of_kind = [fitted[i] for i in which]
                found.append(summarize_refit_errors(kind, group, of_kind, errors))
    return found


def _log_ratio(row: FitCase, constants: Constants) -> float:
    """Return the logarithm of measured over predicted."""
    return math.log(row.expected / predict(row, constants))


def insert_constants(text: str, constants: Constants) -> str:
    """Return the text of engines.toml with these constants."""
    for name, value in constants.items():
        where, key = name.split(".")
        table = "steps" if where == "all" else "engine"
        entry = rf'(\[\[{table}\]\]\nid = "{where}"\n(?:(?!\[\[).*\n)*?{key} = )[\d.e-]+'
        text, changed = re.subn(entry, rf"\g<1>{value:.3g}", text)
        if changed != 1:
            raise LookupError(f"engines.toml has no {key} of {where}")
    return text


def round_constants(constants: Constants) -> Constants:
    return {name: float(f"{value:.3g}") for name, value in constants.items()}


def format_measurement_counts(rows: Iterable[FitCase]) -> str:
    """Return the text of measurements.toml: how many cases there are of each setup."""
    placed = [place_model(r.model, r.gpu, r.fabric, build_serving_setup(r.inputs)) for r in rows]
    single = read_cases(DATA / "cases.json")
    for case in single.cases:
        query = translate(case, single) if case.kind == "decode_tpot" else None
        if isinstance(query, CalculatorQuery):
            inputs = fill_in_formats_and_gpus(parse_inputs(LatencyInputs, query.typed))
            placed.append(place_requested_model(inputs))
    keys = Counter(" ".join(classify_setup(one)) for one in placed)
    lines = [f'"{key}" = {number}\n' for key, number in sorted(keys.items())]
    return _COUNTS_HEADER + "".join(lines)


_COUNTS_HEADER = """# Published measurements of servers: kernels of the GPU, engine, family of the model, and
# whether one GPU, several of a server, or several servers ran it.
# `python -m evidence.fit_serving` counts them in cases-serving.json and cases.json.
"""


def main(arguments: Sequence[str]) -> None:
    file = read_cases(CASES)
    rows = [prepare_fit_case(case, file) for case in file.cases]
    whole = round_constants(fit_constants([r for r in rows if r.fitted]))
    print("\n".join(f"{name:20} {value:.4g}" for name, value in whole.items()))
    left = cross_validate_constants(rows, whole)
    for found in left:
        print(found)
    if "--check" in arguments:
        return
    MEASUREMENTS.write_text(format_measurement_counts(rows), "utf-8")
    ENGINES.write_text(insert_constants(ENGINES.read_text("utf-8"), whole), "utf-8")
    record = [dataclasses.asdict(found) for found in left]
    HELD_OUT.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
