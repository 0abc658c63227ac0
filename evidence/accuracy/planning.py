"""Cases of planning formulas: traffic, queues, failures, cost."""

from collections.abc import Callable

from app.estimator.hardware import collectives as traffic
from app.estimator.hardware.catalog import find_accelerator, find_system
from app.estimator.hardware.throughput import critical_batch, routed_critical_batch
from app.estimator.serving import queueing
from app.estimator.serving import step_time as speculative
from app.estimator.training import run_costs
from evidence.accuracy.cases import CaseInputs, UnsupportedCaseError
from evidence.accuracy.kinds import Translator
from evidence.accuracy.question import CalculatorQuery, FormulaValue, formula, query_calculator

_HOUR = 3600.0
_DAY = 86400.0

_OPERATIONS: dict[str, traffic.Collective] = {
    "all_reduce ring": "all_reduce",
    "all_gather ring": "all_gather",
    "reduce_scatter ring": "reduce_scatter",
}


def comm_volume(asked: CaseInputs) -> CalculatorQuery | FormulaValue:
    """Bytes that one rank sends."""
    asked.note("per", "locality")
    if asked.has("op"):
        return query_calculator(
            "collectives",
            "bytes_sent",
            operation=asked.word("op", _OPERATIONS),
            message=asked.number("message_bytes"),
            gpus=asked.whole("ranks"),
        )
    volume: FormulaValue = asked.word("what", _VOLUMES)(asked)
    return volume


def _zero_volume(asked: CaseInputs, stage: int) -> FormulaValue:
    width = asked.number("dtype_bytes", 2)
    value = traffic.data_parallel_bytes(asked.number("params"), width, stage)
    return formula(traffic.data_parallel_bytes, value, alone=True)


def _tensor_volume(asked: CaseInputs) -> FormulaValue:
    model = asked.architecture()
    tokens = asked.whole("seq") * asked.whole("microbatch", 1)
    message = tokens * model.hidden * asked.number("dtype_bytes", 2)
    value = traffic.tensor_parallel_microbatch_bytes(model.layers, message, asked.whole("tp"))
    return formula(traffic.tensor_parallel_microbatch_bytes, value, alone=True)


def _hop_volume(asked: CaseInputs) -> FormulaValue:
    named = asked.has("model")
    hidden = asked.architecture().hidden if named else asked.whole("hidden")
    asked.note("hidden", "tp")
    tokens = asked.whole("seq") * asked.whole("microbatch", 1)
    message = tokens * hidden * asked.number("dtype_bytes", 2)
    value = traffic.pipeline_bytes(message, asked.whole("scatter_gather_tp", 1))
    return formula(traffic.pipeline_bytes, value, alone=True)


def _expert_volume(asked: CaseInputs) -> FormulaValue:
    width = asked.number("dispatch_bytes", 2) + asked.number("combine_bytes", 2)
    hidden = asked.whole("hidden", 0)
    experts = asked.number("top_k", 0)
    if asked.has("model"):
        model = asked.architecture()
        hidden, experts = hidden or model.hidden, experts or model.experts_per_token
    value = traffic.expert_parallel_bytes(asked.number("tokens"), experts, hidden, width)
    return formula(traffic.expert_parallel_bytes, value, alone=True)


_VOLUMES = {
    "ZeRO stage 1-2 per step": lambda asked: _zero_volume(asked, 1),
    "ZeRO stage 3 / FSDP per step, no reuse of gathered weights": (
        lambda asked: _zero_volume(asked, 3)
    ),
    "tensor parallel all-reduce, forward+backward, per microbatch": _tensor_volume,
    "pipeline p2p per microbatch per stage boundary, forward": _hop_volume,
    "MoE expert-parallel dispatch+combine per layer per direction of training "
    "forward": _expert_volume,
}


def ep_alltoall_time(asked: CaseInputs) -> FormulaValue:
    """Time of dispatch and combine at a given bandwidth [s]."""
    asked.note("model")
    hidden = asked.whole("hidden")
    if asked.word("hidden_rounding", {"7K as printed (7,000)": True, "": False}):
        hidden = 7000
    width = asked.number("dispatch_bytes") + asked.number("combine_bytes")
    tokens, experts = asked.whole("tokens_per_device"), asked.whole("experts_per_token")
    sent = traffic.expert_parallel_bytes(tokens, experts, hidden, width)
    seconds = sent / asked.number("bandwidth_Bps")
    return formula(traffic.expert_parallel_bytes, seconds, alone=True)


def critical_batch_case(asked: CaseInputs) -> FormulaValue:
    """Tokens from which reading weights no longer bounds the time."""
    definition = str(asked.any("definition", ""))
    width = asked.number("weight_bytes", 2)
    card = str(asked.any("gpu", ""))
    peak, bandwidth = asked.number("peak_flops", 0), asked.number("hbm_Bps", 0)
    if not (peak and bandwidth):
        gpu = find_accelerator(card)
        peak = peak or gpu.peak_rate("fp8" if width == 1 else "bf16") or 0.0
        bandwidth = bandwidth or gpu.memory_bandwidth or 0.0
    dense = critical_batch(peak, bandwidth, width)
    if "routed experts" not in definition:
        asked.note("model")
        return formula(critical_batch, dense)
    model = asked.architecture()
    value = routed_critical_batch(dense, model.experts, model.experts_per_token)
    return formula(routed_critical_batch, value)


def spec_decode(asked: CaseInputs) -> FormulaValue:
    """Expected tokens per verification."""
    asked.note("definition")
    draft = asked.whole("draft_tokens")
    value = speculative.tokens_per_step(asked.number("acceptance"), draft)
    return formula(speculative.tokens_per_step, value)


def queue_wait(asked: CaseInputs) -> FormulaValue:
    """Erlang's queueing formulas: the wait, or the probability of waiting."""
    asked.word("model", {"M/M/c": True}, "M/M/c")
    servers, rate = asked.whole("servers"), asked.number("arrival_per_s")
    service = asked.number("mean_service_s")
    answers = {"mean wait in queue": True, "probability of waiting": False}
    if asked.word("answer", answers):
        wait = queueing.mean_wait(servers, rate, service)
        return formula(queueing.mean_wait, wait, alone=True)
    return formula(queueing.erlang_c, queueing.erlang_c(servers, rate * service))


_YOUNG = "Young: sqrt(2 C M)"
_DALY = "Daly higher order: sqrt(2CM)*(1+sqrt(C/2M)/3+C/(18M)) - C"


def checkpoint_interval(asked: CaseInputs) -> FormulaValue:
    """Optimal checkpoint interval [s]."""
    formulas = {_YOUNG: run_costs.young_interval, _DALY: run_costs.daly_interval}
    best: Callable[[float, float], float] = asked.word("formula", formulas, _YOUNG)
    return formula(best, best(asked.number("checkpoint_s"), asked.number("mtbf_s")))


def failure_rate(asked: CaseInputs) -> FormulaValue:
    """Mean time between failures of a job or of one GPU [s]."""
    gpus = asked.whole("gpus")
    of_job = asked.word("answer", {"MTBF of the job": True, "MTBF per GPU": False})
    if asked.has("mtbf_per_gpu_s"):
        each = asked.number("mtbf_per_gpu_s")
        value = run_costs.job_mtbf(each, gpus) if of_job else each
        return formula(run_costs.job_mtbf, value)
    days, failures = asked.number("days"), asked.number("unexpected_interruptions")
    job = run_costs.observed_mtbf(days * _DAY, failures)
    value = job if of_job else job * gpus
    return formula(run_costs.observed_mtbf, value, alone=True)


def goodput(asked: CaseInputs) -> FormulaValue:
    """Goodput: the productive share of the time."""
    asked.note("formula")
    checkpoint, mtbf = asked.number("checkpoint_s"), asked.number("mtbf_s")
    interval = asked.any("interval_s", "Young optimum")
    if interval == "Young optimum":
        interval = run_costs.young_interval(checkpoint, mtbf)
    if not isinstance(interval, int | float):
        raise UnsupportedCaseError(f"interval_s is “{interval}”")
    restart = asked.number("restart_s", 0)
    value = run_costs.goodput(float(interval), checkpoint, restart, mtbf)
    return formula(run_costs.goodput, value, alone=True)


def _drawn(asked: CaseInputs) -> float:
    asked.note("model")
    hours, watts = asked.number("gpu_hours"), asked.number("gpu_watts")
    return run_costs.site_energy(hours * _HOUR, watts, asked.number("pue", 1.0))


def energy_case(asked: CaseInputs) -> FormulaValue:
    """Energy in MWh."""
    return formula(run_costs.site_energy, _drawn(asked) / 3.6e9)


def carbon_case(asked: CaseInputs) -> FormulaValue:
    """Carbon dioxide in tonnes."""
    tonnes = run_costs.carbon_emitted(_drawn(asked), asked.number("kgco2_per_kwh")) / 1e3
    return formula(run_costs.carbon_emitted, tonnes)


def power_case(asked: CaseInputs) -> FormulaValue:
    """Maximum power of a system [W]."""
    asked.note("answer")
    name = str(asked.any("system", ""))
    try:
        watts = find_system(name).power
    except LookupError as error:
        raise UnsupportedCaseError(str(error)) from error
    if watts is None:
        raise UnsupportedCaseError(f"the power of {name} is not known")
    return formula(find_system, watts)


def cost_case(asked: CaseInputs) -> FormulaValue:
    """Cost of GPU-hours, of tokens, or of one hour."""
    asked.note("answer", "model")
    if asked.has("gpu_hours"):
        hours, price = asked.number("gpu_hours"), asked.number("usd_per_gpu_hour")
        return formula(run_costs.rental_cost, run_costs.rental_cost(hours, price))
    if asked.has("usd"):
        # The cost of an hour is computed as the rent of that many hours at one dollar.
        hours = run_costs.rental_cost(asked.number("gpus"), asked.number("days") * 24)
        return formula(run_costs.rental_cost, asked.number("usd") / hours)
    value = run_costs.usd_per_million_tokens(
        asked.number("output_tokens_per_s"),
        asked.whole("gpus"),
        asked.number("usd_per_gpu_hour"),
        asked.number("utilisation", 1.0),
    )
    return formula(run_costs.usd_per_million_tokens, value)


def dataset_case(asked: CaseInputs) -> FormulaValue:
    """Dataset size in bytes, or the rate to read or write it."""
    answer = asked.any("answer", "")
    if answer == "bytes on disk":
        tokens = asked.number("tokens")
        size = run_costs.dataset_bytes(tokens, asked.number("bytes_per_token"))
        return formula(run_costs.dataset_bytes, size)
    if answer == "read bandwidth":
        rate = asked.number("tokens_per_s")
        needed = run_costs.data_read_rate(rate, asked.number("bytes_per_token"))
        return formula(run_costs.data_read_rate, needed)
    if answer == "checkpoint write bandwidth":
        asked.word("content", {"14 bytes/param": True, "": True})
        size = run_costs.checkpoint_bytes(asked.number("params"))
        needed = run_costs.write_rate(size, asked.number("write_seconds"))
        return formula(run_costs.write_rate, needed)
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
