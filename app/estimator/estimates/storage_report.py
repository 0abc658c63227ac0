"""`storage`: verdict, figures, charts and formula steps of a result."""

from collections.abc import Callable

from app.estimator.estimates.storage import (
    BARRIER_SECONDS,
    CONTENTS,
    HOST_COPY,
    GoodputLosses,
    StorageInputs,
    StorageResult,
    compute_storage,
    describe_restart_loss_and_remedy,
    find_verdict_changes,
)
from app.estimator.estimates.training_time_report import describe_expected_failures
from app.estimator.formula_steps import StepBuilder, Term, daly_interval_formula, format_term
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Better,
    Chart,
    ChartLine,
    Estimate,
    FormulaStep,
    ModeledOutput,
    OutputSpec,
    OutputValue,
    ResultTable,
    Verdict,
    read_figures,
    value_or_inapplicable,
    value_with_range_over,
)
from app.estimator.training.run_costs import (
    GPU_MTBF,
    expected_failures,
    probability_of_no_failure,
)
from app.estimator.units import format_number, format_value


def _failure_rate_ranged_output(
    name: str,
    label: str,
    unit: str,
    read: Callable[[StorageResult, GoodputLosses], float],
    better: Better = "",
    *,
    primary: bool = False,
) -> OutputSpec[StorageResult]:
    """Declare an output whose range follows from the published failure rates."""

    def read_with_range(result: StorageResult) -> OutputValue:
        others = (read(result, losses) for losses in result.losses_at_published_failure_rates)
        return value_with_range_over(read(result, result.losses), others)

    return ModeledOutput(name, label, unit, better, read_with_range, primary=primary)


def _loss_over_run_output(name: str, label: str, unit: str) -> OutputSpec[StorageResult]:
    """Declare an output of the running time, with the range of the published failure rates."""

    def read_with_range(result: StorageResult) -> OutputValue:
        duration = result.inputs.duration
        if duration is None:
            return value_or_inapplicable(None, "Write a running time.")
        value, *others = (
            _expected_losses_over_duration(duration, losses)[name]
            for losses in (result.losses, *result.losses_at_published_failure_rates)
        )
        return value_with_range_over(value, others)

    return ModeledOutput(name, label, unit, "", read_with_range)


def _expected_losses_over_duration(duration: float, losses: GoodputLosses) -> dict[str, float]:
    """Return failures and lost time [s] of a running time [s] by output."""
    failures = expected_failures(duration, losses.mtbf)
    return {
        "failures": failures,
        "no_failure": probability_of_no_failure(failures),
        "time_waiting": duration * losses.share_lost_to_saving,
        "time_redone": failures * losses.work_lost_by_failure,
        "time_restarting": failures * losses.restart_time_per_failure,
    }


OUTPUTS: tuple[OutputSpec[StorageResult], ...] = (
    _failure_rate_ranged_output(
        "interval", "Save every", "s", lambda _, losses: losses.checkpoint_interval, primary=True
    ),
    _failure_rate_ranged_output(
        "lost", "Lost time", "%", lambda _, losses: losses.lost_share, "less"
    ),
    _failure_rate_ranged_output(
        "goodput", "Goodput", "%", lambda _, losses: losses.goodput, "more"
    ),
    OutputSpec("checkpoint", "Checkpoint", "B", "less"),
    OutputSpec("write_time", "Time to write it", "s", "less"),
    OutputSpec("stall", "Stall of a save", "s", "less", lambda r: r.losses.save_stall),
    _failure_rate_ranged_output(
        "writing", "Share of time writing", "%", StorageResult.writing_time_share, "less"
    ),
    _failure_rate_ranged_output(
        "waiting", "Waiting for saves", "%", lambda _, losses: losses.share_lost_to_saving, "less"
    ),
    _failure_rate_ranged_output(
        "failing", "Lost in failures", "%", lambda _, losses: losses.share_lost_to_failures, "less"
    ),
    OutputSpec(
        "needed_wait",
        "Write bandwidth, waiting alone within the acceptable loss",
        "B/s",
        "less",
        lambda r: value_or_inapplicable(
            r.write_bandwidth_for_acceptable_wait,
            "Waiting costs less at any bandwidth, or does not depend on it.",
        ),
    ),
    OutputSpec(
        "needed_save",
        "Write bandwidth for a save in time",
        "B/s",
        "less",
        lambda r: value_or_inapplicable(
            r.write_bandwidth_for_save_in_time, "Write how long a save may take."
        ),
    ),
    OutputSpec(
        "needed_write",
        "Write bandwidth, waiting and failures within the acceptable loss",
        "B/s",
        "less",
        lambda r: value_or_inapplicable(
            r.write_bandwidth_for_acceptable_loss,
            "No bandwidth decides whether the acceptable loss is met.",
        ),
    ),
    OutputSpec(
        "needed_read",
        "Read bandwidth needed",
        "B/s",
        "less",
        lambda r: r.needed_data_read_bandwidth,
    ),
    OutputSpec(
        "restart_read", "Time to read a checkpoint", "s", "less", lambda r: r.checkpoint_read_time
    ),
    _loss_over_run_output("failures", "Expected failures", ""),
    _loss_over_run_output("no_failure", "Chance of no failure", "%"),
    _loss_over_run_output("time_waiting", "Time waiting for saves", "s"),
    _loss_over_run_output("time_redone", "Time for lost work, done again", "s"),
    _loss_over_run_output("time_restarting", "Time lost to restarts", "s"),
    _failure_rate_ranged_output(
        "mtbf", "Between failures of the job", "s", lambda _, losses: losses.mtbf, "more"
    ),
    _failure_rate_ranged_output(
        "young", "Young's interval", "s", lambda _, losses: losses.young_checkpoint_interval
    ),
    _failure_rate_ranged_output(
        "saves_per_day", "Checkpoints a day", "", lambda _, losses: losses.saves_per_day
    ),
    OutputSpec("dataset", "Data set", "B"),
    OutputSpec("fast", "Fast tier", "B", "less", lambda r: r.fast_tier_capacity),
    OutputSpec("bulk", "Bulk tier", "B", "less", lambda r: r.bulk_tier_capacity),
    OutputSpec("fits", "Keeps up", better="more", read=lambda r: r.status != "no"),
)
_STEPS = StepBuilder(OUTPUTS, "training-memory")


def estimate(inputs: StorageInputs) -> Estimate:
    result = compute_storage(inputs)
    return Estimate(
        name="storage",
        verdict=_build_verdict(result),
        figures=read_figures(OUTPUTS, result),
        steps=_build_steps(result),
        pictures=(_build_lost_time_chart(result),),
        tables=(_build_tier_table(result), _build_interval_table(result)),
        notes=_build_notes(result),
        changes=find_verdict_changes(result),
    )


def _build_verdict(result: StorageResult) -> Verdict:
    status = result.status
    interval_text = f"Save every {format_value(result.losses.checkpoint_interval, 's')}."
    if not result.reads_data_fast_enough:
        return Verdict(
            status,
            "The GPUs starve.",
            f"Training reads {format_value(result.needed_data_read_bandwidth, 'B/s')} and the storage "
            f"gives {format_value(result.inputs.read_bandwidth, 'B/s')}.",
        )
    if not result.saves_fast_enough:
        return Verdict(status, "Saves take too long.", _slow_saves_text(result))
    losses, limit = result.losses, format_value(result.inputs.acceptable, "%")
    too_much = f"Too much is lost: saves alone cost more than {limit}."
    if losses.share_lost_to_saving <= result.inputs.acceptable:
        too_much = f"Saves stay within {limit}; together with failures too much is lost."
    lead = {"no": too_much, "tight": "Tight.", "fits": interval_text}
    shares = losses.share_lost_to_saving, losses.share_lost_to_failures
    waiting, failing = (format_value(share, "%", extra_decimals=1) for share in shares)
    lost = format_value(losses.lost_share, "%")  # a digit fewer, so that the parts come to it
    size = format_value(result.checkpoint, "B")
    write_time = format_value(result.write_time, "s")
    text = (
        f"A checkpoint of {size} takes {write_time} to write; waiting for saves costs {waiting}, "
        f"failures {failing}: {lost} of the time.{_needed_save_bandwidth_text(result)}"
    )
    if result.write_bandwidth_for_acceptable_loss:
        rate = format_value(result.write_bandwidth_for_acceptable_loss, "B/s")
        text = f"{text} With {rate} or more, waiting and failures cost at most {limit} together."
    elif result.write_bandwidth_for_acceptable_wait:
        rate = format_value(result.write_bandwidth_for_acceptable_wait, "B/s")
        text = f"{text} With {rate} or more, waiting alone costs at most {limit}."
    text += _losses_over_run_text(result)
    if status == "no":
        text = f"{text} {describe_restart_loss_and_remedy(result)}".rstrip()
    label = lead[status]
    return Verdict(status, label, text if label == interval_text else f"{interval_text} {text}")


def _slow_saves_text(result: StorageResult) -> str:
    """Return why saves take too long, and the shortest interval if the typed one can't be kept."""
    size, time = format_value(result.checkpoint, "B"), format_value(result.write_time, "s")
    text = f"A checkpoint of {size} takes {time} to write.{_needed_save_bandwidth_text(result)}"
    rate = result.write_bandwidth_for_typed_interval
    if result.keeps_typed_interval or rate is None:
        return text
    typed = format_value(result.inputs.save_every, "s")
    lost = format_value(result.losses.lost_share, "%", extra_decimals=1)
    text += (
        f" The next save waits until then, so every {typed} can't be kept: every {time} is the "
        f"shortest, and {lost} of the time is lost. Saves every {typed} need "
        f"{format_value(rate, 'B/s')} or more"
    )
    enough = result.write_bandwidth_for_acceptable_loss
    limit = format_value(result.inputs.acceptable, "%")
    if enough is None:
        return f"{text}; no bandwidth keeps the loss within {limit}."
    if enough <= rate:
        return f"{text}."
    return f"{text}, and {format_value(enough, 'B/s')} to lose at most {limit}."


def _losses_over_run_text(result: StorageResult) -> str:
    """Return failures and lost hours of the running time as sentences; empty without one."""
    duration = result.inputs.duration
    if duration is None:
        return ""
    failures, _, *times = _expected_losses_over_duration(duration, result.losses).values()
    waiting, redone, restarting = (format_value(time, "s") for time in times)
    return (
        f" In {format_value(duration, 's')} expect {format_value(failures, '')} failures. "
        f"{describe_expected_failures(failures, result.losses.mtbf)} Waiting for saves "
        f"takes {waiting}, lost work {redone}, restarts {restarting}."
    )


def _needed_save_bandwidth_text(result: StorageResult) -> str:
    """Return the write bandwidth for a save in time as a sentence; empty without a limit."""
    within, needed = result.inputs.save_within, result.write_bandwidth_for_save_in_time
    if within is None or needed is None:
        return ""
    text = f" A save within {format_value(within, 's')} needs {format_value(needed, 'B/s')}"
    if result.typed_write_bandwidth is None:
        return f"{text}, which is what counts here."
    return f"{text}."


def _build_steps(result: StorageResult) -> tuple[FormulaStep, ...]:
    inputs = result.inputs
    losses = result.losses
    stall, mtbf = format_term(losses.save_stall, "s"), format_term(losses.mtbf, "s")
    interval = format_term(losses.checkpoint_interval, "s")
    set_back, set_back_numbers = "restart", format_term(losses.restart_and_read_time, "s")
    if inputs.saving == "beside":
        set_back = "(restart + write)"
        set_back_numbers += f" + {format_term(losses.background_write_time, 's')}"
        set_back_numbers = f"({set_back_numbers})"
    return (
        *_checkpoint_and_dataset_size_steps(result),
        *_needed_save_bandwidth_steps(result),
        _stall_step(result),
        _STEPS.build_step(
            "mtbf",
            "hours between failures of one GPU ÷ GPUs",
            f"{format_term((inputs.mtbf or GPU_MTBF) / 3600)} h ÷ {format_term(inputs.gpus)}",
            losses.mtbf,
            "kokolis-2025",
        ),
        _STEPS.build_step_from_template(
            "young",
            "√(2 × [stall] × [time between failures])",
            (stall, mtbf),
            losses.young_checkpoint_interval,
            "young-1974",
        ),
        _interval_step(result),
        _STEPS.build_step(
            "goodput",
            f"interval ÷ (MTBF × e^({set_back} ÷ MTBF) × (e^((interval + stall) ÷ MTBF) − 1)); MTBF is "
            "the mean time between failures of the job, and a restart includes the time to read "
            "the checkpoint",
            f"{interval} ÷ ({mtbf} × exp({set_back_numbers} ÷ {mtbf}) × "
            f"(exp(({interval} + {stall}) ÷ {mtbf}) − 1))",
            losses.goodput,
            "daly-2006",
        ),
        _STEPS.build_step_from_template(
            "waiting",
            "[goodput] × [stall] ÷ [interval]",
            (losses.goodput, (losses.save_stall, "s"), (losses.checkpoint_interval, "s")),
            losses.share_lost_to_saving,
            "daly-2006",
        ),
        *_losses_over_run_steps(result),
    )


def _losses_over_run_steps(result: StorageResult) -> tuple[FormulaStep, ...]:
    duration, losses = result.inputs.duration, result.losses
    if duration is None:
        return ()
    values = _expected_losses_over_duration(duration, losses)
    failures = values["failures"]
    redone = "about half an interval"
    if result.inputs.saving == "beside":
        redone += " and the write"
    templates: dict[str, tuple[str, tuple[Term, ...]]] = {
        "failures": ("[running time] ÷ [MTBF]", ((duration, "s"), (losses.mtbf, "s"))),
        "no_failure": ("exp(−[expected failures])", (failures,)),
        "time_waiting": (
            "[running time] × [goodput] × [stall] ÷ [interval]",
            (
                (duration, "s"),
                losses.goodput,
                (losses.save_stall, "s"),
                (losses.checkpoint_interval, "s"),
            ),
        ),
        "time_redone": (
            f"[expected failures] × [work lost by each, {redone}]",
            (failures, (losses.work_lost_by_failure, "s")),
        ),
        "time_restarting": (
            "[running time] × (1 − exp(−[restart] ÷ [MTBF]))",
            (
                (duration, "s"),
                (losses.restart_and_read_time, "s"),
                (losses.mtbf, "s"),
            ),
        ),
    }
    return tuple(
        _STEPS.build_step_from_template(name, template, terms, values[name], "daly-2006")
        for name, (template, terms) in templates.items()
    )


def _needed_save_bandwidth_steps(result: StorageResult) -> tuple[FormulaStep, ...]:
    if result.inputs.save_within is None or result.write_bandwidth_for_save_in_time is None:
        return ()
    size, within = result.checkpoint, result.inputs.save_within
    return (
        _STEPS.build_step_from_template(
            "needed_save",
            "[checkpoint] ÷ [time a save may take]",
            ((size, "B"), (within, "s")),
            result.write_bandwidth_for_save_in_time,
            "mlperf-storage",
        ),
    )


def _interval_step(result: StorageResult) -> FormulaStep:
    """Return the step for the given or Daly's interval, at least the write time."""
    losses = result.losses
    formula, numbers = daly_interval_formula(losses.save_stall, losses.mtbf)
    if result.inputs.save_every is not None:
        formula, numbers = "given", format_term(result.inputs.save_every, "s")
    if result.inputs.saving == "beside":
        formula += "; at least the write"
        numbers = f"max({numbers}, {format_term(result.write_time, 's')})"
    return _STEPS.build_step("interval", formula, numbers, losses.checkpoint_interval, "daly-2006")


def _stall_step(result: StorageResult) -> FormulaStep:
    inputs, size = result.inputs, format_term(result.checkpoint, "B")
    formula = "checkpoint ÷ write bandwidth"
    numbers = f"{size} ÷ {format_term(inputs.write_bandwidth, 'B/s')}"
    if inputs.stall is not None:
        formula, numbers = "given", format_term(inputs.stall, "s")
    elif inputs.saving == "beside":
        formula = "wait of all ranks + checkpoint ÷ GPUs ÷ rate to host memory"
        copy = f"{size} ÷ {format_term(inputs.gpus)} ÷ {format_term(HOST_COPY, 'B/s')}"
        numbers = f"{format_term(BARRIER_SECONDS, 's')} + {copy}"
    source = "mlperf-storage" if inputs.saving == "wait" else "pytorch-async"
    return _STEPS.build_step("stall", formula, numbers, result.losses.save_stall, source)


def _checkpoint_and_dataset_size_steps(result: StorageResult) -> tuple[FormulaStep, ...]:
    inputs = result.inputs
    parts = CONTENTS[inputs.content].parts
    bytes_sum = " + ".join(f"{format_term(part.bytes_per_parameter)} B" for part in parts)
    parts_sum = " + ".join(part.label for part in parts)
    is_sum = len(parts) > 1
    return (
        _STEPS.build_step(
            "checkpoint",
            f"parameters × bytes of {f'({parts_sum})' if is_sum else parts_sum}",
            f"{format_term(result.model_parameters)} × {f'({bytes_sum})' if is_sum else bytes_sum}",
            result.checkpoint,
            CONTENTS[inputs.content].source_id,
        ),
        _STEPS.build_step(
            "needed_read",
            "bytes per token × tokens per second of a GPU × GPUs",
            f"{format_term(inputs.bytes_per_token)} B × {format_term(inputs.gpu_rate)} × {format_term(inputs.gpus)}",
            result.needed_data_read_bandwidth,
            "mlperf-storage",
        ),
        _STEPS.build_step(
            "dataset",
            "tokens × bytes of a token",
            f"{format_term(inputs.tokens)} × {format_term(inputs.bytes_per_token)} B",
            result.dataset,
            "mlperf-storage",
        ),
    )


def _interval_label(result: StorageResult) -> str:
    if result.is_interval_set_by_write:
        return "The shortest possible"
    return "The best" if result.inputs.save_every is None else "As given"


def _build_lost_time_chart(result: StorageResult) -> Chart:
    losses = result.losses
    factors = _filter_possible_interval_factors(result, tuple(1.7**i for i in range(-5, 6)))
    points = tuple(losses.checkpoint_interval * factor for factor in factors)
    allowed = tuple((x, result.inputs.acceptable) for x in (points[0], points[-1]))
    return Chart(
        "Lost time by interval",
        "Time between checkpoints",
        "Lost time",
        "s",
        "%",
        (
            ChartLine("Lost", tuple((x, 1 - losses.goodput_at_interval(x)) for x in points)),
            ChartLine("Acceptable", allowed, "dash"),
            ChartLine(
                _interval_label(result), ((losses.checkpoint_interval, losses.lost_share),), "mark"
            ),
        ),
        x_log=True,
    )


def _build_tier_table(result: StorageResult) -> ResultTable:
    checkpoints_kept = format_number(result.inputs.kept)
    further_copies = format_number(result.inputs.copies - 1)
    return ResultTable(
        "Capacity by tier",
        ("Tier", "Holds", "Capacity"),
        (
            (
                "Memory and disks of the nodes",
                "the newest checkpoint in parts",
                (result.checkpoint, "B"),
            ),
            (
                "Parallel file system",
                f"one copy of the data, checkpoints kept: {checkpoints_kept}",
                (result.fast_tier_capacity, "B"),
            ),
            (
                "Object store",
                f"further copies of the data: {further_copies}, the last checkpoint",
                (result.bulk_tier_capacity, "B"),
            ),
        ),
    )


def _filter_possible_interval_factors(
    result: StorageResult, factors: tuple[float, ...]
) -> tuple[float, ...]:
    """Return the multiples of the interval in which a save is written before the next one."""
    losses = result.losses
    return tuple(
        factor
        for factor in factors
        if losses.checkpoint_interval * factor >= losses.background_write_time
    )


def _build_interval_table(result: StorageResult) -> ResultTable:
    losses = result.losses
    label_by_factor = {
        0.25: "A quarter of it",
        0.5: "Half of it",
        1.0: _interval_label(result),
        2.0: "Twice as long",
        4.0: "Four times as long",
    }
    rows = tuple(
        (
            label_by_factor[factor],
            (losses.checkpoint_interval * factor, "s"),
            (1 - losses.goodput_at_interval(losses.checkpoint_interval * factor), "%"),
            (86400 / (losses.checkpoint_interval * factor + losses.save_stall), ""),
        )
        for factor in _filter_possible_interval_factors(result, tuple(label_by_factor))
    )
    columns = ("Interval", "Save every", "Lost time", "Checkpoints a day")
    return ResultTable("What another interval costs", columns, rows)


def _build_notes(result: StorageResult) -> tuple[str, ...]:
    inputs = result.inputs
    notes = []
    if inputs.mtbf is None:
        notes.append(
            "A GPU with its share of the node is taken to fail once in 30,000 hours, as on a "
            "research cluster of 16,000 GPUs (Kokolis et al.); published jobs lie between "
            "8,000 and the 51,000 of Llama 3's training, which the range covers."
        )
    if inputs.saving == "beside":
        notes.append(
            f"{_ANY_TIME}; the work of half an interval and of the time of a write is done twice on "
            "average."
        )
        notes.append(
            "Saving beside the training holds a copy in host memory. Its stall is a second and the "
            "copy. Until it is written, a failure goes back to the save before it, and the next "
            "save waits."
        )
    else:
        notes.append(f"{_ANY_TIME}; half an interval of work is done twice on average.")
    if inputs.content in _OPTIMIZER_NOTES:
        notes.append(_OPTIMIZER_NOTES[inputs.content])
    if result.needed_data_read_bandwidth < 0.01 * inputs.read_bandwidth:
        notes.append(
            "Reading text is no load for storage; checkpoints decide. Images and video "
            "turn this round."
        )
    return tuple(notes)


_ANY_TIME = "Failures come at any time, also while saving and restarting"
_OPTIMIZER_NOTES = {
    "adamw": "Gradients are not saved: the next step computes them anew. MLPerf "
    "Storage also writes about 14 bytes for each parameter: 912 GiB for a 70B model.",
    "weights": "Weights alone serve a model but do not resume its training: the "
    "optimizer would start afresh.",
}


ENTRY = EstimateSpec(
    name="storage",
    title="Storage and checkpoints",
    summary="Data and checkpoint sizes, rates that keep GPUs fed, how often to save.",
    group="Cluster",
    inputs_type=StorageInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("needed_save", "interval", "lost", "waiting", "failing", "checkpoint"),
    outputs_of_typed_inputs=(("acceptable", "needed_wait"),),
    main_inputs=("model", "gpus", "write_bandwidth"),
    topic="cluster-components",
)
