"""Cases of planning formulas: traffic, queues, failures, cost."""

from collections.abc import Callable

from app.estimator.hardware import collectives as traffic
from app.estimator.hardware.catalog import find_accelerator, find_system
from app.estimator.hardware.throughput import critical_batch, moe_critical_batch
from app.estimator.serving import queueing
from app.estimator.serving import step_time as speculative
from app.estimator.training import run_costs
from evidence.accuracy.cases import CaseInputs, UnsupportedCaseError
from evidence.accuracy.kinds import Translator
from evidence.accuracy.question import CalculatorQuery, FormulaValue, build_query, formula_value

_HOUR = 3600.0
_DAY = 86400.0

_OPERATIONS: dict[str, traffic.Collective] = {
    "all_reduce ring": "all_reduce",
    "all_gather ring": "all_gather",
    "reduce_scatter ring": "reduce_scatter",
}


def comm_volume(inputs: CaseInputs) -> CalculatorQuery | FormulaValue:
    """Bytes that one rank sends."""
    inputs.ignore("per", "locality")
    if inputs.has("op"):
        return build_query(
            "collectives",
            "bytes_sent",
            operation=inputs.read_meaning("op", _OPERATIONS),
            message=inputs.read_number("message_bytes"),
            gpus=inputs.read_int("ranks"),
        )
    volume: FormulaValue = inputs.read_meaning("what", _VOLUMES)(inputs)
    return volume


def _data_parallel_volume(inputs: CaseInputs, stage: int) -> FormulaValue:
    width = inputs.read_number("dtype_bytes", 2)
    value = traffic.data_parallel_bytes_per_rank(inputs.read_number("params"), width, stage)
    return formula_value(traffic.data_parallel_bytes_per_rank, value, report_alone=True)


def _tensor_parallel_volume(inputs: CaseInputs) -> FormulaValue:
    model = inputs.read_architecture()
    tokens = inputs.read_int("seq") * inputs.read_int("microbatch", 1)
    message = tokens * model.hidden * inputs.read_number("dtype_bytes", 2)
    value = traffic.tensor_parallel_microbatch_bytes_per_rank(
        model.layers, message, inputs.read_int("tp")
    )
    return formula_value(
        traffic.tensor_parallel_microbatch_bytes_per_rank, value, report_alone=True
    )


def _pipeline_volume(inputs: CaseInputs) -> FormulaValue:
    named = inputs.has("model")
    hidden = inputs.read_architecture().hidden if named else inputs.read_int("hidden")
    inputs.ignore("hidden", "tp")
    tokens = inputs.read_int("seq") * inputs.read_int("microbatch", 1)
    message = tokens * hidden * inputs.read_number("dtype_bytes", 2)
    value = traffic.pipeline_boundary_bytes_per_rank(
        message, inputs.read_int("scatter_gather_tp", 1)
    )
    return formula_value(traffic.pipeline_boundary_bytes_per_rank, value, report_alone=True)


def _expert_parallel_volume(inputs: CaseInputs) -> FormulaValue:
    width = inputs.read_number("dispatch_bytes", 2) + inputs.read_number("combine_bytes", 2)
    hidden = inputs.read_int("hidden", 0)
    experts = inputs.read_number("top_k", 0)
    if inputs.has("model"):
        model = inputs.read_architecture()
        hidden, experts = hidden or model.hidden, experts or model.experts_per_token
    value = traffic.expert_parallel_layer_bytes_per_rank(
        inputs.read_number("tokens"), experts, hidden, width
    )
    return formula_value(traffic.expert_parallel_layer_bytes_per_rank, value, report_alone=True)


_VOLUMES = {
    "ZeRO stage 1-2 per step": lambda inputs: _data_parallel_volume(inputs, 1),
    "ZeRO stage 3 / FSDP per step, no reuse of summarize_results weights": (
        lambda inputs: _data_parallel_volume(inputs, 3)
    ),
    "tensor parallel all-reduce, forward+backward, per microbatch": _tensor_parallel_volume,
    "pipeline p2p per microbatch per stage boundary, forward": _pipeline_volume,
    "MoE expert-parallel dispatch+combine per layer per direction of training "
    "forward": _expert_parallel_volume,
}


def ep_alltoall_time(inputs: CaseInputs) -> FormulaValue:
    """Time of dispatch and combine at a given bandwidth [s]."""
    inputs.ignore("model")
    hidden = inputs.read_int("hidden")
    if inputs.read_meaning("hidden_rounding", {"7K as printed (7,000)": True, "": False}):
        hidden = 7000
    width = inputs.read_number("dispatch_bytes") + inputs.read_number("combine_bytes")
    tokens, experts = inputs.read_int("tokens_per_device"), inputs.read_int("experts_per_token")
    sent = traffic.expert_parallel_layer_bytes_per_rank(tokens, experts, hidden, width)
    seconds = sent / inputs.read_number("bandwidth_Bps")
    return formula_value(traffic.expert_parallel_layer_bytes_per_rank, seconds, report_alone=True)


def critical_batch_case(inputs: CaseInputs) -> FormulaValue:
    """Tokens from which reading weights no longer bounds the time."""
    definition = str(inputs.read_any("definition", ""))
    width = inputs.read_number("weight_bytes", 2)
    card = str(inputs.read_any("gpu", ""))
    peak, bandwidth = inputs.read_number("peak_flops", 0), inputs.read_number("hbm_Bps", 0)
    if not (peak and bandwidth):
        gpu = find_accelerator(card)
        peak = peak or gpu.dense_peak_rate("fp8" if width == 1 else "bf16") or 0.0
        bandwidth = bandwidth or gpu.memory_bandwidth or 0.0
    dense = critical_batch(peak, bandwidth, width)
    if "routed experts" not in definition:
        inputs.ignore("model")
        return formula_value(critical_batch, dense)
    model = inputs.read_architecture()
    value = moe_critical_batch(dense, model.experts, model.experts_per_token)
    return formula_value(moe_critical_batch, value)


def spec_decode(inputs: CaseInputs) -> FormulaValue:
    """Expected tokens per verification."""
    inputs.ignore("definition")
    draft = inputs.read_int("draft_tokens")
    value = speculative.tokens_per_step(inputs.read_number("acceptance"), draft)
    return formula_value(speculative.tokens_per_step, value)


def queue_wait(inputs: CaseInputs) -> FormulaValue:
    """Erlang's queueing formulas: the wait, or the probability of waiting."""
    inputs.read_meaning("model", {"M/M/c": True}, "M/M/c")
    servers, rate = inputs.read_int("servers"), inputs.read_number("arrival_per_s")
    service = inputs.read_number("mean_service_s")
    answers = {"mean wait in queue": True, "probability of waiting": False}
    if inputs.read_meaning("answer", answers):
        wait = queueing.mean_queue_wait(servers, rate, service)
        return formula_value(queueing.mean_queue_wait, wait, report_alone=True)
    return formula_value(
        queueing.erlang_c_waiting_probability,
        queueing.erlang_c_waiting_probability(servers, rate * service),
    )


_YOUNG = "Young: sqrt(2 C M)"
_DALY = "Daly higher order: sqrt(2CM)*(1+sqrt(C/2M)/3+C/(18M)) - C"


def checkpoint_interval(inputs: CaseInputs) -> FormulaValue:
    """Optimal checkpoint interval [s]."""
    formulas = {
        _YOUNG: run_costs.young_checkpoint_interval,
        _DALY: run_costs.daly_checkpoint_interval,
    }
    best: Callable[[float, float], float] = inputs.read_meaning("formula", formulas, _YOUNG)
    return formula_value(
        best, best(inputs.read_number("checkpoint_s"), inputs.read_number("mtbf_s"))
    )


def failure_rate(inputs: CaseInputs) -> FormulaValue:
    """Mean time between failures of a job or of one GPU [s]."""
    gpus = inputs.read_int("gpus")
    of_job = inputs.read_meaning("answer", {"MTBF of the job": True, "MTBF per GPU": False})
    if inputs.has("mtbf_per_gpu_s"):
        each = inputs.read_number("mtbf_per_gpu_s")
        value = run_costs.job_mtbf(each, gpus) if of_job else each
        return formula_value(run_costs.job_mtbf, value)
    days, failures = inputs.read_number("days"), inputs.read_number("unexpected_interruptions")
    job = run_costs.observed_mtbf(days * _DAY, failures)
    value = job if of_job else job * gpus
    return formula_value(run_costs.observed_mtbf, value, report_alone=True)


def goodput(inputs: CaseInputs) -> FormulaValue:
    """Goodput: the productive share of the time."""
    inputs.ignore("formula")
    checkpoint, mtbf = inputs.read_number("checkpoint_s"), inputs.read_number("mtbf_s")
    interval = inputs.read_any("interval_s", "Young optimum")
    if interval == "Young optimum":
        interval = run_costs.young_checkpoint_interval(checkpoint, mtbf)
    if not isinstance(interval, int | float):
        raise UnsupportedCaseError(f"interval_s is “{interval}”")
    restart = inputs.read_number("restart_s", 0)
    value = run_costs.first_order_goodput(float(interval), checkpoint, restart, mtbf)
    return formula_value(run_costs.first_order_goodput, value, report_alone=True)


def _drawn(inputs: CaseInputs) -> float:
    inputs.ignore("model")
    hours, watts = inputs.read_number("gpu_hours"), inputs.read_number("gpu_watts")
    return run_costs.site_energy_watt_seconds(hours * _HOUR, watts, inputs.read_number("pue", 1.0))


def energy_case(inputs: CaseInputs) -> FormulaValue:
    """Energy in MWh."""
    return formula_value(run_costs.site_energy_watt_seconds, _drawn(inputs) / 3.6e9)


def carbon_case(inputs: CaseInputs) -> FormulaValue:
    """Carbon dioxide in tonnes."""
    tonnes = run_costs.carbon_emitted_kg(_drawn(inputs), inputs.read_number("kgco2_per_kwh")) / 1e3
    return formula_value(run_costs.carbon_emitted_kg, tonnes)


def power_case(inputs: CaseInputs) -> FormulaValue:
    """Maximum power of a system [W]."""
    inputs.ignore("answer")
    name = str(inputs.read_any("system", ""))
    try:
        watts = find_system(name).power
    except LookupError as error:
        raise UnsupportedCaseError(str(error)) from error
    if watts is None:
        raise UnsupportedCaseError(f"the power of {name} is not known")
    return formula_value(find_system, watts)


def cost_case(inputs: CaseInputs) -> FormulaValue:
    """Cost of GPU-hours, of tokens, or of one hour."""
    inputs.ignore("answer", "model")
    if inputs.has("gpu_hours"):
        hours, price = inputs.read_number("gpu_hours"), inputs.read_number("usd_per_gpu_hour")
        return formula_value(run_costs.rental_cost, run_costs.rental_cost(hours, price))
    if inputs.has("usd"):
        # The cost of an hour is computed as the rent of that many hours at one dollar.
        hours = run_costs.rental_cost(inputs.read_number("gpus"), inputs.read_number("days") * 24)
        return formula_value(run_costs.rental_cost, inputs.read_number("usd") / hours)
    value = run_costs.usd_per_million_tokens(
        inputs.read_number("output_tokens_per_s"),
        inputs.read_int("gpus"),
        inputs.read_number("usd_per_gpu_hour"),
        inputs.read_number("utilisation", 1.0),
    )
    return formula_value(run_costs.usd_per_million_tokens, value)


def dataset_case(inputs: CaseInputs) -> FormulaValue:
    """Dataset size in bytes, or the rate to read or write it."""
    answer = inputs.read_any("answer", "")
    if answer == "bytes on disk":
        tokens = inputs.read_number("tokens")
        size = run_costs.dataset_bytes(tokens, inputs.read_number("bytes_per_token"))
        return formula_value(run_costs.dataset_bytes, size)
    if answer == "read bandwidth":
        rate = inputs.read_number("tokens_per_s")
        needed = run_costs.data_read_rate(rate, inputs.read_number("bytes_per_token"))
        return formula_value(run_costs.data_read_rate, needed)
    if answer == "checkpoint write bandwidth":
        inputs.read_meaning("content", {"14 bytes/param": True, "": True})
        size = run_costs.checkpoint_bytes(inputs.read_number("params"))
        needed = run_costs.bandwidth_to_write_in_time(size, inputs.read_number("write_seconds"))
        return formula_value(run_costs.bandwidth_to_write_in_time, needed)
    raise UnsupportedCaseError(f"answer “{answer}” is not known")


KINDS: dict[str, Translator] = {
    "comm_volume": comm_volume,
    "ep_alltoall_time": ep_alltoall_time,
    "critical_batch": critical_batch_case,
    "spec_decode_tokens_per_step": spec_decode,
    "queue_wait": queue_wait,
    "checkpoint_interval": checkpoint_interval,
    "failure_rate": failure_rate,
    "goodput": goodput,
    "energy": energy_case,
    "carbon": carbon_case,
    "power": power_case,
    "cost": cost_case,
    "dataset": dataset_case,
}
