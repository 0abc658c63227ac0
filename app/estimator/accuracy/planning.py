"""Cases of planning that follow from formulas: FLOPs, traffic, queues, money."""

from app.estimator.accuracy.cases import Asked, Inexpressible, card_of
from app.estimator.accuracy.kinds import Predictor
from app.estimator.hardware import energy, traffic
from app.estimator.hardware.accelerators import find_system
from app.estimator.hardware.rates import critical_batch, routed_critical_batch
from app.estimator.models.architecture import Architecture, generic
from app.estimator.running import checkpoints, money, reliability
from app.estimator.serving import queueing
from app.estimator.timing import flops, pipeline, speculative

_HOUR = 3600.0
_DAY = 86400.0

_SIX = {
    "6*N*D": False,
    "6*N*D, no attention term": False,
    "6ND + 12 L H Q T attention": True,
}
# PaLM 540B, whose convention adds attention: layers, heads × width, context.
_PALM = (118, 48 * 256, 2048)


def train_total_flops(asked: Asked) -> float:
    """Operations of a training run."""
    parameters, tokens = asked.number("params"), asked.number("tokens")
    total = flops.training_flops(parameters, tokens)
    if not asked.word("convention", _SIX, "6*N*D"):
        return total
    if abs(parameters / 540.35e9 - 1) < 0.01:
        layers, width, context = _PALM
    else:
        model = generic(round(parameters))
        layers, width, context = model.layers, model.hidden, 2048
    return total + flops.attention_flops(width, layers, context) * tokens


_CAUSAL = "forward+backward, causal attention counted half"
_MEGATRON = (
    "Megatron: causal attention counted half, logits counted, input embedding not; "
    "sliding layers at their window"
)
_LORA = "Megatron-Bridge LoRA accounting"


def train_flops_per_token(asked: Asked) -> float:
    """Operations per token in a named convention."""
    model, context = asked.model(), asked.whole("seq")
    convention = asked.word(
        "convention", {_CAUSAL: "causal", _MEGATRON: "causal", _LORA: "lora"}
    )
    asked.note("method")
    if convention == "lora":
        # Its tables count attention over packed samples that are short.
        return 2 / 3 * flops.flops_per_token(model, 1)
    return flops.flops_per_token(model, context)


_FULL = "model FLOPs, full (not causal-halved) attention"
_PALM_MFU = "6N + 12 L H Q T (full attention), no recompute"
_HARDWARE = "hardware FLOPs with selective recompute"
_MOSAIC = (
    "6*N + 12*L*d*s per token (full attention, N includes tied embedding and positions)"
)


def train_mfu(asked: Asked) -> float:
    """Utilisation from a measured step or rate, in percent."""
    peak = asked.number("peak_tflops", 0) * 1e12
    card = str(asked.any("gpu", ""))
    if not peak and card:
        peak = _peak(asked, card)
    if asked.has("achieved_tflops_per_gpu"):
        asked.note("gpus", "seq", "model", "attention", "convention")
        return asked.number("achieved_tflops_per_gpu") * 1e12 / peak * 100
    return 100 * _flops_and_rate(asked) / peak


def _peak(asked: Asked, name: str) -> float:
    return card_of(asked.file, name).peak("bf16") or 0.0


def _flops_and_rate(asked: Asked) -> float:
    """Operations per second of one accelerator."""
    if asked.has("model"):
        return _of_model(asked)
    convention = asked.word(
        "convention", {_FULL: 1, _PALM_MFU: 2, _HARDWARE: 3, _MOSAIC: 2}
    )
    layers, context = asked.whole("layers"), asked.whole("seq")
    if convention == 2:
        width = asked.whole("heads") * asked.whole("head_dim")
        each = 6 * asked.number("params")
        each += flops.attention_flops(width, layers, context)
        return each * asked.number("tokens_per_s") / asked.number("chips")
    hidden = asked.whole("hidden")
    asked.note("heads")
    shape = (layers, hidden, asked.whole("vocab"))
    each = flops.narayanan_flops(shape, context)
    if convention == 3:
        # Scores are computed twice more: forward again, and within backward.
        each += flops.attention_flops(hidden, layers, context)
    tokens = asked.whole("global_batch") * context
    return each * tokens / asked.number("step_time_s") / asked.whole("gpus")


def _of_model(asked: Asked) -> float:
    model, context = asked.model(), asked.whole("seq")
    convention = asked.any("convention", "")
    attention = asked.any("attention", "")
    asked.note("gpus", "global_batch")
    each = flops.flops_per_token(
        model, context, causal="non-causal" not in str(attention)
    )
    if convention == _MOSAIC:
        each = _mosaic(model, context)
    elif convention not in ("", _FULL):
        raise Inexpressible(f"convention “{convention}” is not known for a model")
    elif convention == _FULL:
        each = flops.flops_per_token(model, context, causal=False)
    return each * asked.number("tokens_per_s_per_gpu")


def _mosaic(model: Architecture, context: int) -> float:
    parameters = model.parameters + (context - model.positions) * model.hidden
    width = model.heads * model.head_dim
    return 6 * parameters + flops.attention_flops(width, model.layers, context)


_WALL = {"8TP/(nX)": 8, "8TP/(nX) (full recompute)": 8, "": 0}


def train_time(asked: Asked) -> float:
    """Wall time from given rates [s]."""
    tokens, gpus = asked.number("tokens"), asked.number("gpus", 1)
    passes = asked.word("formula", _WALL)
    if asked.has("gpu_hours_per_trillion_tokens"):
        asked.note("params")
        hours = asked.number("gpu_hours_per_trillion_tokens") * tokens / 1e12
        return hours * _HOUR / gpus
    if asked.has("tokens_per_s_per_gpu"):
        asked.note("params")
        return tokens / (gpus * asked.number("tokens_per_s_per_gpu"))
    rate = asked.number("achieved_tflops") * 1e12
    return (passes or 6) * tokens * asked.number("params") / (gpus * rate)


def pp_bubble(asked: Asked) -> float:
    """Idle over ideal time of a pipeline."""
    asked.note("definition")
    asked.word("schedule", dict.fromkeys(("1F1B", "GPipe/1F1B", "interleaved"), True))
    stages, batches = asked.whole("stages"), asked.whole("microbatches")
    return pipeline.bubble(stages, batches, asked.whole("virtual_stages", 1))


_OPERATIONS: dict[str, traffic.Collective] = {
    "all_reduce ring": "all_reduce",
    "all_gather ring": "all_gather",
    "reduce_scatter ring": "reduce_scatter",
}


def comm_volume(asked: Asked) -> float:
    """Bytes that one rank sends."""
    asked.note("per", "locality")
    if asked.has("op"):
        operation = asked.word("op", _OPERATIONS)
        message = asked.number("message_bytes")
        return traffic.bytes_sent(operation, asked.whole("ranks"), message)
    return float(asked.word("what", _VOLUMES)(asked))


def _zero_volume(asked: Asked, stage: int) -> float:
    width = asked.number("dtype_bytes", 2)
    return traffic.data_parallel(asked.number("params"), width, stage)


def _tensor_volume(asked: Asked) -> float:
    model = asked.model()
    message = asked.whole("seq") * asked.whole("microbatch", 1) * model.hidden
    width = asked.number("dtype_bytes", 2)
    return traffic.tensor_parallel(model.layers, message * width, asked.whole("tp"))


def _hop_volume(asked: Asked) -> float:
    hidden = asked.model().hidden if asked.has("model") else asked.whole("hidden")
    asked.note("hidden", "tp")
    message = asked.whole("seq") * asked.whole("microbatch", 1) * hidden
    width = asked.number("dtype_bytes", 2)
    return traffic.pipeline_hop(message * width, asked.whole("scatter_gather_tp", 1))


def _expert_volume(asked: Asked) -> float:
    width = asked.number("dispatch_bytes", 2) + asked.number("combine_bytes", 2)
    hidden = asked.whole("hidden", 0)
    experts = asked.number("top_k", 0)
    if asked.has("model"):
        model = asked.model()
        hidden, experts = hidden or model.hidden, experts or model.experts_per_token
    return traffic.expert_parallel(asked.number("tokens"), experts, hidden, width)


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


def ep_alltoall_time(asked: Asked) -> float:
    """Time of dispatch and combine at a given bandwidth [s]."""
    asked.note("model")
    hidden = asked.whole("hidden")
    if asked.word("hidden_rounding", {"7K as printed (7,000)": True, "": False}):
        hidden = 7000
    width = asked.number("dispatch_bytes") + asked.number("combine_bytes")
    tokens, experts = asked.whole("tokens_per_device"), asked.whole("experts_per_token")
    sent = traffic.expert_parallel(tokens, experts, hidden, width)
    return sent / asked.number("bandwidth_Bps")


def critical_batch_case(asked: Asked) -> float:
    """Tokens from which weights stop deciding."""
    definition = str(asked.any("definition", ""))
    peak, bandwidth = asked.number("peak_flops"), asked.number("hbm_Bps")
    asked.note("gpu")
    dense = critical_batch(peak, bandwidth, asked.number("weight_bytes"))
    if "routed experts" not in definition:
        asked.note("model")
        return dense
    model = asked.model()
    return routed_critical_batch(dense, model.experts, model.experts_per_token)


def spec_decode(asked: Asked) -> float:
    """Expected tokens per verification."""
    asked.note("definition")
    draft = asked.whole("draft_tokens")
    return speculative.tokens_per_step(asked.number("acceptance"), draft)


def queue_wait(asked: Asked) -> float:
    """Erlang's queue: the wait, or the chance of one."""
    asked.word("model", {"M/M/c": True}, "M/M/c")
    servers, rate = asked.whole("servers"), asked.number("arrival_per_s")
    service = asked.number("mean_service_s")
    answers = {"mean wait in queue": True, "probability of waiting": False}
    if asked.word("answer", answers):
        return queueing.mean_wait(servers, rate, service)
    return queueing.erlang_c(servers, rate * service)


_YOUNG = "Young: sqrt(2 C M)"
_DALY = "Daly higher order: sqrt(2CM)*(1+sqrt(C/2M)/3+C/(18M)) - C"


def checkpoint_interval(asked: Asked) -> float:
    """The interval that loses least [s]."""
    formulas = {_YOUNG: reliability.young_interval, _DALY: reliability.daly_interval}
    formula = asked.word("formula", formulas, _YOUNG)
    return float(formula(asked.number("checkpoint_s"), asked.number("mtbf_s")))


def failure_rate(asked: Asked) -> float:
    """Time between failures of a job or of one GPU [s]."""
    gpus = asked.whole("gpus")
    of_job = asked.word("answer", {"MTBF of the job": True, "MTBF per GPU": False})
    if asked.has("mtbf_per_gpu_s"):
        each = asked.number("mtbf_per_gpu_s")
        return reliability.job_mtbf(each, gpus) if of_job else each
    days, failures = asked.number("days"), asked.number("unexpected_interruptions")
    job = reliability.observed_mtbf(days * _DAY, failures)
    return job if of_job else job * gpus


def goodput(asked: Asked) -> float:
    """Productive share of the time."""
    asked.note("formula")
    checkpoint, mtbf = asked.number("checkpoint_s"), asked.number("mtbf_s")
    interval = asked.any("interval_s", "Young optimum")
    if interval == "Young optimum":
        interval = reliability.young_interval(checkpoint, mtbf)
    if not isinstance(interval, int | float):
        raise Inexpressible(f"interval_s is “{interval}”")
    restart = asked.number("restart_s", 0)
    return reliability.goodput(float(interval), checkpoint, restart, mtbf)


def _drawn(asked: Asked) -> float:
    asked.note("model")
    hours, watts = asked.number("gpu_hours"), asked.number("gpu_watts")
    return energy.energy(hours * _HOUR, watts, asked.number("pue", 1.0))


def energy_case(asked: Asked) -> float:
    """Energy in MWh."""
    return _drawn(asked) / 3.6e9


def carbon_case(asked: Asked) -> float:
    """Carbon dioxide in tonnes."""
    return energy.carbon(_drawn(asked), asked.number("kgco2_per_kwh")) / 1e3


def power_case(asked: Asked) -> float:
    """Highest power of a system [W]."""
    asked.note("answer")
    name = str(asked.any("system", ""))
    try:
        watts = find_system(name).power
    except LookupError as error:
        raise Inexpressible(str(error)) from error
    if watts is None:
        raise Inexpressible(f"the power of {name} is not known")
    return watts


def cost_case(asked: Asked) -> float:
    """Cost of hours, of tokens, or of one hour."""
    asked.note("answer", "model")
    if asked.has("gpu_hours"):
        return money.rent(asked.number("gpu_hours"), asked.number("usd_per_gpu_hour"))
    if asked.has("usd"):
        hours = asked.number("gpus") * asked.number("days") * 24
        return asked.number("usd") / hours
    return money.usd_per_million_tokens(
        asked.number("output_tokens_per_s"),
        asked.whole("gpus"),
        asked.number("usd_per_gpu_hour"),
        asked.number("utilisation", 1.0),
    )


def dataset_case(asked: Asked) -> float:
    """Bytes on disk, or the rate to read or write them."""
    answer = asked.any("answer", "")
    if answer == "bytes on disk":
        tokens = asked.number("tokens")
        return checkpoints.dataset_bytes(tokens, asked.number("bytes_per_token"))
    if answer == "read bandwidth":
        rate = asked.number("tokens_per_s")
        return checkpoints.read_rate(rate, asked.number("bytes_per_token"))
    if answer == "checkpoint write bandwidth":
        asked.word("content", {"14 bytes/param": True, "": True})
        size = checkpoints.checkpoint_bytes(asked.number("params"))
        return checkpoints.write_rate(size, asked.number("write_seconds"))
    raise Inexpressible(f"answer “{answer}” is not known")


KINDS: dict[str, Predictor] = {
    "train_total_flops": train_total_flops,
    "train_flops_per_token": train_flops_per_token,
    "train_mfu": train_mfu,
    "train_time": train_time,
    "pp_bubble": pp_bubble,
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
