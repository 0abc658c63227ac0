"""`storage`: verdict, figures, charts and formula steps of a result."""

import dataclasses

from app.estimator.estimates.storage import (
    BARRIER,
    CONTENTS,
    GPU_MTBF,
    HOST_COPY,
    GoodputLosses,
    StorageInputs,
    StorageResult,
    compute_losses,
    compute_storage,
    describe_remedy,
    find_flips,
)
from app.estimator.formula_steps import StepBuilder, format_term
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Chart,
    ChartLine,
    Estimate,
    Figure,
    FormulaStep,
    Output,
    ResultTable,
    Status,
    Verdict,
    outputs_by_name,
)
from app.estimator.units import format_number, format_value

# From one failure per 8,000 GPU-hours (1,024-GPU jobs of a research cluster) to one per
# 51,000 (Llama 3: 419 in 54 days on 16,384 GPUs).
GPU_MTBF_RANGE = (8_000 * 3600.0, 51_000 * 3600.0)


OUTPUTS = (
    Output("interval", "Save every", "s", modeled=True),
    Output("lost", "Lost time", "%", better="less", modeled=True),
    Output("goodput", "Goodput", "%", better="more", modeled=True),
    Output("checkpoint", "Checkpoint", "B", better="less"),
    Output("write_time", "Time to write it", "s", better="less"),
    Output("stall", "Stall of a save", "s", better="less"),
    Output("writing", "Share of time writing", "%", better="less", modeled=True),
    Output("needed_write", "Write bandwidth needed", "B/s", better="less"),
    Output("needed_read", "Read bandwidth needed", "B/s", better="less"),
    Output("restart_read", "Time to read a checkpoint", "s", better="less"),
    Output("mtbf", "Between failures of the job", "s", better="more", modeled=True),
    Output("young", "Interval of Young", "s", modeled=True),
    Output("saves_per_day", "Checkpoints a day", modeled=True),
    Output("dataset", "Data set", "B"),
    Output("fast", "Fast tier", "B", better="less"),
    Output("bulk", "Bulk tier", "B", better="less"),
    Output("fits", "Keeps up", better="more"),
)
_OUT = outputs_by_name(OUTPUTS)
_WORKING = StepBuilder(_OUT, "training-memory")


_TIGHT = 0.8


def build_report(asked: StorageInputs, found: StorageResult) -> Estimate:
    """Build the estimate: verdict, figures and steps for sizes, rates and losses."""
    return Estimate(
        name="storage",
        verdict=_build_verdict(asked, found),
        figures=_build_figures(asked, found),
        steps=_build_steps(asked, found),
        pictures=(_build_chart(asked, found),),
        tables=(_build_tier_table(asked, found), _build_interval_table(found)),
        notes=_build_notes(asked, found),
        changes=find_flips(asked, found),
    )


def storage_status(asked: StorageInputs, found: StorageResult) -> Status:
    """Return `no` if reading is too slow or too much is lost, `tight` if nearly so."""
    reads = found.needed_read / asked.read_bandwidth
    loses = found.losses.lost / asked.acceptable
    worst = max(reads, loses)
    return "no" if worst > 1 else "tight" if worst > _TIGHT else "fits"


def _build_verdict(asked: StorageInputs, found: StorageResult) -> Verdict:
    losses = found.losses
    status = storage_status(asked, found)
    every = f"Save every {format_value(losses.interval, 's')}."
    if found.needed_read > asked.read_bandwidth:
        return Verdict(
            status,
            "The GPUs starve.",
            f"Training reads {format_value(found.needed_read, 'B/s')} and the storage "
            f"gives {format_value(asked.read_bandwidth, 'B/s')}.",
        )
    lead = {"no": "Too much is lost.", "tight": "Tight.", "fits": every}
    lost = format_value(losses.lost, "%")
    size = format_value(found.checkpoint, "B")
    takes = format_value(found.write_time, "s")
    text = (
        f"A checkpoint of {size} takes {takes} to write; saving and failures cost "
        f"{lost} of the time."
    )
    if status == "no":
        text = f"{text} {describe_remedy(asked, found)}"
    words = lead[status]
    return Verdict(status, words, text if words == every else f"{every} {text}")


def _build_figures(asked: StorageInputs, found: StorageResult) -> tuple[Figure, ...]:
    losses = found.losses
    rare, often = _loss_bounds(asked, found)
    fast, bulk = _storage_capacities(asked, found)
    known = asked.mtbf is not None

    def ranged(name: str, value: float, pair: tuple[float, float]) -> Figure:
        if known:
            return Figure(_OUT[name], value)
        low, high = min(*pair, value), max(*pair, value)
        return Figure(_OUT[name], value, low, high)

    pairs = tuple(zip(_interval_values(found, rare), _interval_values(found, often), strict=True))
    return (
        dataclasses.replace(
            ranged("interval", losses.interval, pairs[0]),
            primary=True,
        ),
        ranged("lost", losses.lost, pairs[1]),
        ranged("goodput", losses.goodput, pairs[2]),
        Figure(_OUT["checkpoint"], found.checkpoint),
        Figure(_OUT["write_time"], found.write_time),
        Figure(_OUT["stall"], losses.stall),
        ranged("writing", found.writing(losses), pairs[3]),
        Figure(
            _OUT["needed_write"],
            found.needed_write,
            note=""
            if found.needed_write
            else "No bandwidth decides whether the acceptable loss is met.",
            applies=found.needed_write is not None,
        ),
        Figure(_OUT["needed_read"], found.needed_read),
        Figure(_OUT["restart_read"], found.restart_read),
        ranged("mtbf", losses.mtbf, pairs[4]),
        ranged("young", losses.young, pairs[5]),
        ranged("saves_per_day", _saves_per_day(losses), pairs[6]),
        Figure(_OUT["dataset"], found.dataset),
        Figure(_OUT["fast"], fast),
        Figure(_OUT["bulk"], bulk),
        Figure(_OUT["fits"], storage_status(asked, found) != "no"),
    )


def _loss_bounds(asked: StorageInputs, found: StorageResult) -> tuple[GoodputLosses, GoodputLosses]:
    """Return the losses with the lowest and the highest published failure rate."""
    often, rare = GPU_MTBF_RANGE
    size = found.checkpoint
    return compute_losses(asked, size, each=rare), compute_losses(asked, size, each=often)


def _interval_values(found: StorageResult, of: GoodputLosses) -> tuple[float, ...]:
    """Return the values shown with an interval, in the order of the figures."""
    return (
        of.interval,
        of.lost,
        of.goodput,
        found.writing(of),
        of.mtbf,
        of.young,
        _saves_per_day(of),
    )


def _saves_per_day(of: GoodputLosses) -> float:
    return 86400 / (of.interval + of.stall)


def _storage_capacities(asked: StorageInputs, found: StorageResult) -> tuple[float, float]:
    kept = found.dataset + asked.kept * found.checkpoint
    rest = (asked.copies - 1) * found.dataset + found.checkpoint
    return kept / asked.fill, rest / asked.fill


def _build_steps(asked: StorageInputs, found: StorageResult) -> tuple[FormulaStep, ...]:
    losses = found.losses
    stall, mtbf = format_term(losses.stall, "s"), format_term(losses.mtbf, "s")
    every = format_term(losses.interval, "s")
    return (
        *_size_steps(asked, found),
        _WORKING.line(
            "stall",
            *_stall_words(asked, found),
            losses.stall,
            "mlperf-storage" if asked.saving == "wait" else "pytorch-async",
        ),
        _WORKING.line(
            "mtbf",
            "hours of a GPU ÷ GPUs",
            f"{format_term((asked.mtbf or GPU_MTBF) / 3600)} h ÷ {format_term(asked.gpus)}",
            losses.mtbf,
            "llama-3",
        ),
        _WORKING.line(
            "young",
            "√(2 × stall × time between failures)",
            f"√(2 × {stall} × {mtbf})",
            losses.young,
            "young-1974",
        ),
        _WORKING.line("interval", *_interval_words(asked, found), losses.interval, "daly-2006"),
        _WORKING.line(
            "goodput",
            "interval ÷ (failures × e^(restart ÷ failures) × (e^((interval + stall) ÷ "
            "failures) − 1)), failures: the time between them",
            f"{every} ÷ ({mtbf} × exp({format_term(losses.restart, 's')} ÷ {mtbf}) × "
            f"(exp(({every} + {stall}) ÷ {mtbf}) − 1))",
            losses.goodput,
            "daly-2006",
        ),
    )


def _interval_words(asked: StorageInputs, found: StorageResult) -> tuple[str, str]:
    """Return Daly's interval as formula and numbers, at least the write time."""
    losses = found.losses
    stall, apart = format_term(losses.stall, "s"), format_term(losses.mtbf, "s")
    rule = "√(2 × {0} × {1}) × (1 + √({0} ÷ (2 × {1})) ÷ 3 + {0} ÷ (18 × {1})) − {0}"
    formula = rule.format("stall", "failures") + ", failures: the time between them"
    numbers = rule.format(stall, apart)
    if losses.stall >= 2 * losses.mtbf:
        formula, numbers = "time between failures", apart
    if asked.saving == "beside":
        formula += "; at least the write"
        numbers = f"max({numbers}, {format_term(found.write_time, 's')})"
    return formula, numbers


def _stall_words(asked: StorageInputs, found: StorageResult) -> tuple[str, str]:
    if asked.stall is not None:
        return "given", format_term(asked.stall, "s")
    size = format_term(found.checkpoint, "B")
    if asked.saving == "beside":
        part = f"{size} ÷ {format_term(asked.gpus)} ÷ {format_term(HOST_COPY, 'B/s')}"
        return (
            "wait of all ranks + checkpoint ÷ GPUs ÷ rate to host memory",
            f"{format_term(BARRIER, 's')} + {part}",
        )
    return (
        "checkpoint ÷ write bandwidth",
        f"{size} ÷ {format_term(asked.write_bandwidth, 'B/s')}",
    )


def _size_steps(asked: StorageInputs, found: StorageResult) -> tuple[FormulaStep, ...]:
    parts = CONTENTS[asked.content].parts
    added = " + ".join(f"{format_term(size)} B" for _, size in parts)
    named = " + ".join(what for what, _ in parts)
    several = len(parts) > 1
    read = "bytes of a token × tokens per second of a GPU × GPUs"
    return (
        _WORKING.line(
            "checkpoint",
            f"parameters × {f'({named})' if several else named}, in bytes each",
            f"{format_term(found.parameters)} × {f'({added})' if several else added}",
            found.checkpoint,
            CONTENTS[asked.content].source,
        ),
        _WORKING.line(
            "needed_read",
            read,
            f"{format_term(asked.bytes_per_token)} B × {format_term(asked.gpu_rate)} × {format_term(asked.gpus)}",
            found.needed_read,
            "mlperf-storage",
        ),
        _WORKING.line(
            "dataset",
            "tokens × bytes of a token",
            f"{format_term(asked.tokens)} × {format_term(asked.bytes_per_token)} B",
            found.dataset,
            "mlperf-storage",
        ),
    )


def _build_chart(asked: StorageInputs, found: StorageResult) -> Chart:
    losses = found.losses
    points = tuple(losses.interval * 1.7**i for i in range(-5, 6))
    allowed = tuple((x, asked.acceptable) for x in (points[0], points[-1]))
    return Chart(
        "Lost time by interval",
        "Time between checkpoints",
        "Lost time",
        "s",
        "%",
        (
            ChartLine("Lost", tuple((x, 1 - losses.goodput_at(x)) for x in points)),
            ChartLine("Acceptable", allowed, "dash"),
            ChartLine("Best", ((losses.interval, losses.lost),), "mark"),
        ),
        x_log=True,
    )


def _build_tier_table(asked: StorageInputs, found: StorageResult) -> ResultTable:
    fast, bulk = _storage_capacities(asked, found)
    newest = format_number(asked.kept)
    rest = format_number(asked.copies - 1)
    return ResultTable(
        "Capacity by tier",
        ("Tier", "Holds", "Capacity"),
        (
            (
                "Memory and disks of the nodes",
                "the newest checkpoint in parts",
                (found.checkpoint, "B"),
            ),
            (
                "Parallel file system",
                f"one copy of the data, checkpoints kept: {newest}",
                (fast, "B"),
            ),
            (
                "Object store",
                f"further copies of the data: {rest}, the last checkpoint",
                (bulk, "B"),
            ),
        ),
    )


def _build_interval_table(found: StorageResult) -> ResultTable:
    losses = found.losses
    rows = tuple(
        (
            words,
            (losses.interval * factor, "s"),
            (1 - losses.goodput_at(losses.interval * factor), "%"),
            (86400 / (losses.interval * factor + losses.stall), ""),
        )
        for words, factor in (
            ("A quarter of it", 0.25),
            ("Half of it", 0.5),
            ("The best", 1.0),
            ("Twice as long", 2.0),
            ("Four times as long", 4.0),
        )
    )
    columns = ("Interval", "Save every", "Lost time", "Checkpoints a day")
    return ResultTable("What another interval costs", columns, rows)


def _build_notes(asked: StorageInputs, found: StorageResult) -> tuple[str, ...]:
    notes = []
    if asked.mtbf is None:
        notes.append(
            "A GPU with its share of the node is taken to fail once in 50,000 hours; "
            "published clusters lie between 8,000 and 51,000."
        )
    notes.append(_ANY_TIME)
    if asked.saving == "beside":
        notes.append(
            "Saving beside the training holds a copy in host memory. Its stall is a "
            "second and the copy, and the next save waits until it is written."
        )
    if asked.content in _OPTIMIZER_NOTES:
        notes.append(_OPTIMIZER_NOTES[asked.content])
    if found.needed_read < 0.01 * asked.read_bandwidth:
        notes.append(
            "Reading text is no load for storage; checkpoints decide. Images and video "
            "turn this round."
        )
    return tuple(notes)


_ANY_TIME = (
    "Failures come at any time, also while saving and restarting; half an interval of "
    "work is done twice on average."
)
_OPTIMIZER_NOTES = {
    "adamw": "Gradients are not saved: the next step computes them anew. MLPerf "
    "Storage also writes about 14 bytes for each parameter: 912 GiB for a 70B model.",
    "weights": "Weights alone serve a model but do not resume its training: the "
    "optimizer would start afresh.",
}


def estimate(asked: StorageInputs) -> Estimate:
    """Size data and checkpoints, and find the best checkpoint interval."""
    return build_report(asked, compute_storage(asked))


ENTRY = EstimateSpec(
    name="storage",
    title="Storage and checkpoints",
    summary="Data and checkpoint sizes, rates that keep GPUs fed, how often to save.",
    group="Cluster",
    inputs=StorageInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("interval", "lost", "checkpoint"),
    topic="cluster-components",
)
