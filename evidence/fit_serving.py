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
earlier fits (`START`), so that constants that the cases do not determine stay there.
"""

import dataclasses
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from app.estimator import data_files as catalogue
from app.estimator.estimates.latency import LatencyInputs, place_requested_model
from app.estimator.estimates.serving_capacity import ServingCapacityInputs, serving_setup
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.hardware.collectives import Interconnect, gpu_interconnect
from app.estimator.inputs import parse_inputs
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.serving.engine import (
    InferenceEngine,
    SharedEngineConstants,
    find_engine,
    load_shared_engine_constants,
)
from app.estimator.serving.replica import (
    BatchTiming,
    EqualRounds,
    RequestLengths,
    RequestPattern,
    added_prompt_time,
    idle_ttft,
    mean_step_time,
    median_ttft,
    min_mixed_step_time,
    profile_replica,
    rounds_of_run,
)
from app.estimator.serving.step_time import (
    PlacedModel,
    decode_time,
    measured_setup_class,
    place_model,
)
from evidence import DATA
from evidence.accuracy.cases import CaseFile, ReferenceCase, read_cases
from evidence.accuracy.held_out import GROUPS, HeldOutErrors, summed
from evidence.accuracy.question import CalculatorQuery
from evidence.accuracy.report import groups_of, translate

CASES = DATA / "cases-serving.json"
HELD_OUT = DATA / "held-out-serving.json"
ENGINES = catalogue.DATA / "engines.toml"
MEASUREMENTS = catalogue.DATA / "measurements.toml"
# The fitted constants, in the units of engines.toml, with their priors.
_EACH = {
    "vllm": {"kernel_us": 5.3, "prefill": 1.2, "eager_us": 20.0, "grouped": 0.4},
    "trtllm": {"kernel_us": 3.9, "prefill": 1.03, "eager_us": 20.0, "grouped": 0.42},
    "sglang": {"kernel_us": 6.75, "prefill": 2.0, "eager_us": 50.0, "grouped": 0.2},
}
_COMMON = {"routed_us": 31.0, "padding": 17.0, "skew": 0.77}
_COMMON |= {"waits": 1.5, "others": 0.13, "spread": 0.17}
START = {
    **{f"{engine}.{name}": v for engine, row in _EACH.items() for name, v in row.items()},
    **{f"all.{name}": value for name, value in _COMMON.items()},
}
FIRST_WEIGHT = 0.6
SOFT = 0.15  # Residuals above this value count linearly.
DRAWN = 0.3  # Strength of the priors, per factor of e.
ROUNDS, PROBE, LONGEST_STEP = 12, 0.02, 0.7

Constants = dict[str, float]


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """One case as input of the fit."""

    kind: str
    expected: float
    fitted: bool
    groups: tuple[str, str, str]
    asked: ServingCapacityInputs
    model: Architecture
    gpu: Accelerator
    fabric: Interconnect
    rounds: tuple[EqualRounds, ...]

    @property
    def requests(self) -> RequestLengths:
        """Return the tokens of prompt and answer."""
        return RequestLengths(self.asked.prompt_tokens, self.asked.output_tokens)

    @property
    def traffic(self) -> RequestPattern:
        """Return the lengths with their variation."""
        asked = self.asked
        return RequestPattern(self.requests, asked.prompt_variation, asked.answer_variation)


def measured(case: ReferenceCase, file: CaseFile) -> Measured:
    """Prepare a case: everything that does not depend on the constants."""
    question = translate(case, file)
    if not isinstance(question, CalculatorQuery):
        raise TypeError(f"{case.id} is not asked of a calculator")
    asked = parse_inputs(ServingCapacityInputs, question.typed)
    gpu, model = find_accelerator(asked.gpu), find_model(asked.model)
    # Llama 3.1 and 3.3 have the same shape, so they count as one model.
    shape = f"{model.layers} layers of {model.hidden}, {model.vocabulary} words"
    fabric = gpu_interconnect(gpu, asked.network_rate, gpus_per_domain=asked.domain or 0)
    batches = [EqualRounds(1.0, float(asked.concurrent))]
    if case.kind == "offline_throughput":
        traffic = RequestPattern(RequestLengths(asked.prompt_tokens, asked.output_tokens))
        placed = place_model(model, gpu, fabric, serving_setup(asked))
        full = max(
            1.0, profile_replica(placed, traffic, asked.memory_utilization).max_reserved_batch
        )
        run = (asked.run_requests or full) / (asked.replicas or 1)
        batches = rounds_of_run(run, full)
    return Measured(
        kind=case.kind,
        expected=case.expected,
        fitted=case.calibration,
        groups=(shape, gpu.id, groups_of(case)[2]),
        asked=asked,
        model=model,
        gpu=gpu,
        fabric=fabric,
        rounds=tuple(batches),
    )


def fitted_with(engine: str, constants: Constants) -> tuple[InferenceEngine, SharedEngineConstants]:
    """Return the engine and step overheads for these constants."""
    of = {name: constants[f"{engine}.{name}"] for name in _EACH[engine]}
    common = {name: constants[f"all.{name}"] for name in _COMMON}
    own = dataclasses.replace(
        find_engine(engine),
        seconds_per_kernel=of["kernel_us"] * 1e-6,
        prefill_time_factor=of["prefill"],
        grouped_matmul_factor=of["grouped"],
        seconds_per_eager_kernel=of["eager_us"] * 1e-6,
    )
    return own, dataclasses.replace(
        load_shared_engine_constants(),
        routing_seconds=common["routed_us"] * 1e-6,
        padding_rows_per_expert=common["padding"],
        routing_skew=common["skew"],
        steps_before_first_token=common["waits"],
        other_prompts_factor=common["others"],
        synchrony_spread=common["spread"],
    )


def placed_with(row: Measured, constants: Constants) -> PlacedModel:
    """Return the model of a case on its GPUs, with these constants."""
    fitted = fitted_with(row.asked.engine, constants)
    return place_model(row.model, row.gpu, row.fabric, serving_setup(row.asked), fitted)


def predicted(row: Measured, constants: Constants) -> float:
    """Return the estimate's prediction for a case."""
    placed, answer = placed_with(row, constants), row.asked.output_tokens
    requests = seconds = 0.0
    for count, batch in row.rounds:
        own = max(1.0, batch / row.asked.attention_parallel)
        timed = _timed(placed, row.traffic, own)
        first = median_ttft(placed, timed, row.traffic, idle_ttft(placed, row.traffic))
        each = mean_step_time(timed, (own - 1) / max(1.0, answer))
        if row.kind in ("serving_ttft", "serving_tpot"):
            return first if row.kind == "serving_ttft" else each
        requests += count * batch
        seconds += count * (first + answer * each)
    return requests * (row.asked.replicas or 1) * answer / seconds


def _timed(placed: PlacedModel, traffic: RequestPattern, batch: float) -> BatchTiming:
    """Return the timing of a GPU group at one batch size, without profile curves."""
    step = recorded = decode_time(placed, batch, traffic.mean_context)
    filled = placed.engine.padded_batch(batch)
    if filled > batch:
        recorded = decode_time(placed, filled, traffic.mean_context)
    cost = added_prompt_time(placed, traffic, batch, step.total)
    alone = recorded.total - recorded.request_dependent_time + step.request_dependent_time
    launching = min_mixed_step_time(placed, step.total)
    return BatchTiming(step.total, cost, batch, alone, launching)


def fit(rows: Sequence[Measured], start: Constants = START) -> Constants:
    """Fit the constants to the rows by damped Gauss-Newton steps."""
    share = Counter((r.groups[0], r.groups[1], r.asked.engine) for r in rows)
    weights = [
        share[(r.groups[0], r.groups[1], r.asked.engine)] ** -0.5
        * (FIRST_WEIGHT if r.kind == "serving_ttft" else 1.0)
        for r in rows
    ]
    now = dict(start)
    cost, left = _costed(rows, weights, now)
    damping = 1e-3
    for _ in range(ROUNDS):
        step = _step(rows, weights, now, left, damping)
        tried = {name: now[name] * math.exp(by) for name, by in step.items()}
        new_cost, new_left = _costed(rows, weights, tried)
        if new_cost < cost:
            done = cost - new_cost < 1e-4 * cost
            now, cost, left, damping = tried, new_cost, new_left, damping / 3
            if done:
                break
        else:
            damping *= 10
    return now


def _residuals(rows: Sequence[Measured], constants: Constants) -> list[float]:
    return [math.log(predicted(row, constants) / row.expected) for row in rows]


def _costed(
    rows: Sequence[Measured], weights: Sequence[float], constants: Constants
) -> tuple[float, list[float]]:
    left = _residuals(rows, constants)
    soft = sum(
        w * w * 2 * SOFT**2 * (math.sqrt(1 + (r / SOFT) ** 2) - 1)
        for r, w in zip(left, weights, strict=True)
    )
    drawn = sum((DRAWN * math.log(v / START[k])) ** 2 for k, v in constants.items())
    return soft + drawn, left


def _step(
    rows: Sequence[Measured],
    weights: Sequence[float],
    now: Constants,
    left: Sequence[float],
    damping: float,
) -> Constants:
    """Return the next step: changes of the logarithms of the constants."""
    names = list(now)
    slopes = []
    for name in names:
        moved = now | {name: now[name] * math.exp(PROBE)}
        slopes.append([_slope(r, a, name, moved) for r, a in zip(rows, left, strict=True)])
    trust = [w * w / math.sqrt(1 + (r / SOFT) ** 2) for r, w in zip(left, weights, strict=True)]
    matrix = [[_inner(a, b, trust) for b in slopes] for a in slopes]
    right = [-_inner(a, left, trust) for a in slopes]
    for i, name in enumerate(names):
        matrix[i][i] = matrix[i][i] * (1 + damping) + DRAWN**2
        right[i] -= DRAWN**2 * math.log(now[name] / START[name])
    found = solved(matrix, right)
    longest = max(LONGEST_STEP, *map(abs, found)) / LONGEST_STEP
    return {name: by / longest for name, by in zip(names, found, strict=True)}


def _slope(row: Measured, here: float, name: str, moved: Constants) -> float:
    """Return the change of a residual with one constant; 0 if it belongs to another engine."""
    if not name.startswith(("all.", f"{row.asked.engine}.")):
        return 0.0
    return (math.log(predicted(row, moved) / row.expected) - here) / PROBE


def _inner(a: Iterable[float], b: Iterable[float], weights: Iterable[float]) -> float:
    return sum(x * y * w for x, y, w in zip(a, b, weights, strict=True))


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
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


def refits(rows: Sequence[Measured], whole: Constants) -> list[HeldOutErrors]:
    """Return errors on each group with constants fitted without it."""
    trained = [r for r in rows if r.fitted]
    fitted = [_ratio(r, whole) for r in rows]
    found = []
    for index, group in enumerate(GROUPS):
        left = list(fitted)  # Groups that the fit has not seen.
        for name in sorted({r.groups[index] for r in trained}):
            constants = fit([r for r in trained if r.groups[index] != name], whole)
            for i, row in enumerate(rows):
                if row.groups[index] == name:
                    left[i] = _ratio(row, constants)
        for kind in sorted({r.kind for r in rows}):
            which = [i for i, r in enumerate(rows) if r.kind == kind]
            names = [rows[i].groups[index] for i in which]
            if len(set(names)) > 1:
                seen, unseen = [fitted[i] for i in which], [left[i] for i in which]
                found.append(summed(kind, group, names, seen, unseen))
    return found


def _ratio(row: Measured, constants: Constants) -> float:
    """Return the logarithm of measured over predicted."""
    return math.log(row.expected / predicted(row, constants))


def written(text: str, constants: Constants) -> str:
    """Return the text of engines.toml with these constants."""
    for name, value in constants.items():
        where, key = name.split(".")
        table = "steps" if where == "all" else "engine"
        entry = rf'(\[\[{table}\]\]\nid = "{where}"\n(?:(?!\[\[).*\n)*?{key} = )[\d.e-]+'
        text, changed = re.subn(entry, rf"\g<1>{value:.3g}", text)
        if changed != 1:
            raise LookupError(f"engines.toml has no {key} of {where}")
    return text


def rounded(constants: Constants) -> Constants:
    """Round constants to the precision of the file."""
    return {name: float(f"{value:.3g}") for name, value in constants.items()}


def counted(rows: Iterable[Measured]) -> str:
    """Return the text of measurements.toml: how many cases there are of each setup."""
    placed = [place_model(r.model, r.gpu, r.fabric, serving_setup(r.asked)) for r in rows]
    single = read_cases(DATA / "cases.json")
    for case in single.cases:
        question = translate(case, single) if case.kind == "decode_tpot" else None
        if isinstance(question, CalculatorQuery):
            placed.append(place_requested_model(parse_inputs(LatencyInputs, question.typed)))
    keys = Counter(" ".join(measured_setup_class(one)) for one in placed)
    lines = [f'"{key}" = {number}\n' for key, number in sorted(keys.items())]
    return _HEAD + "".join(lines)


_HEAD = """# Published measurements of servers: kernels of the GPU, engine, family of the model, and
# whether one GPU, several of a server, or several servers ran it.
# `python -m evidence.fit_serving` counts them in cases-serving.json and cases.json.
"""


def main(arguments: Sequence[str]) -> None:
    """Fit, cross-validate, and write both results."""
    file = read_cases(CASES)
    rows = [measured(case, file) for case in file.cases]
    whole = rounded(fit([r for r in rows if r.fitted]))
    print("\n".join(f"{name:20} {value:.4g}" for name, value in whole.items()))
    left = refits(rows, whole)
    for found in left:
        print(found)
    if "--check" in arguments:
        return
    MEASUREMENTS.write_text(counted(rows), "utf-8")
    ENGINES.write_text(written(ENGINES.read_text("utf-8"), whole), "utf-8")
    record = [dataclasses.asdict(found) for found in left]
    HELD_OUT.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
