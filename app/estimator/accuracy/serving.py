"""Cases of inference: decoding alone, a full server, latencies under load."""

import re

from app.estimator.accuracy.cases import Asked, Inexpressible, card_of, model_of
from app.estimator.accuracy.kinds import Predictor
from app.estimator.accuracy.prediction import Prediction, between
from app.estimator.confidence import interval
from app.estimator.hardware.accelerators import Accelerator, find_accelerator
from app.estimator.hardware.networks import fabric_of
from app.estimator.hardware.traffic import expert_parallel
from app.estimator.models.architecture import Architecture, find_model, from_config
from app.estimator.serving.engine import Serving
from app.estimator.serving.load import Load, Requests, closed_loop, saturated
from app.estimator.serving.step import Placed, decode_time, place

_WEIGHTS = {
    "": "bf16",
    "bf16": "bf16",
    "fp16": "fp16",
    "int8": "int8",
    "fp8": "fp8",
    "fp8_block128": "fp8-block",
    "nvfp4": "nvfp4",
    "mxfp4": "mxfp4-experts",
    "awq_int4_g128": "awq-int4",
    "gptq_int4_g128": "gptq-int4",
    "gptq_int8_g128": "gptq-int8",
    "int4_g32_weight_only": "gptq-int4-g32",
    "int8_weight_only": "gptq-int8",
}
_EXCHANGE = "EP all-to-all only, two micro-batches overlapped, 2 x comm per layer"
_WEIGHTS_ONLY = "weights only, no overhead"
_BOUNDS = {_EXCHANGE: "exchange", _WEIGHTS_ONLY: "weights", "": ""}
_BYTES = {"bf16": 2.0, "fp16": 2.0, "int8": 1.0, "fp8": 1.0, "": 2.0}
# DeepSeek-V3 under its published bound: 32 tokens to 9 experts, FP8 out and BF16
# back, the width printed as 7K.
_BOUND_TOKENS, _BOUND_EXPERTS, _BOUND_WIDTH, _BOUND_BYTES = 32, 9, 7000, 3


def decode_tpot(asked: Asked) -> Prediction | float:
    """Time per output token [s]."""
    bound = asked.word("bound", _BOUNDS)
    if bound == "exchange":
        asked.note("model")
        sent = expert_parallel(
            _BOUND_TOKENS, _BOUND_EXPERTS, _BOUND_WIDTH, _BOUND_BYTES
        )
        return 2 * asked.whole("layers") * sent / asked.number("bandwidth_Bps")
    if bound == "weights":
        asked.note("batch", "gpu", "model")
        each: float = asked.word("weights", _BYTES)
        size = asked.number("params") * each
        return size / (asked.whole("tp", 1) * asked.number("bandwidth_Bps"))
    return _decoding(asked)


# Half of the package: AMD's data sheet divided by two.
_MI250X_DIE = Accelerator(
    id="mi250x-gcd",
    name="MI250X, one die",
    vendor="AMD",
    architecture="CDNA 2",
    memory=64e9,
    memory_bandwidth=1.6384e12,
    bf16=191.5e12,
    fp16=191.5e12,
    tdp=280.0,
)

_DECODERS = {
    "gpt-fast": "compiled",
    "vLLM 0.6.3": "vllm-2024",
    "": "compiled",
}


def _decoding(asked: Asked) -> Prediction:
    asked.note("definition", "layers", "params", "bandwidth_Bps")
    gpu, gpus = _decode_card(asked)
    serving = Serving(
        weights=asked.word("weights", _WEIGHTS),
        tensor=asked.whole("tp", gpus),
        software=asked.word("framework", _DECODERS),
    )
    model = _decode_model(asked)
    batch = asked.whole("batch", 1)
    context = asked.number("context", 0)
    answer = asked.number("output_tokens", 0)
    context = context or asked.number("input_tokens", 0) + answer / 2
    placed = place(model, gpu, fabric_of(gpu), serving)
    seconds = decode_time(placed, batch, max(1.0, context)).total
    return between(seconds, *interval("decode"))


def _decode_card(asked: Asked) -> tuple[Accelerator, int]:
    """The card of a case: some name a part or a number of them."""
    name = str(asked.any("gpu", ""))
    if name == "MI250X one GCD":
        return _MI250X_DIE, 1
    pods = re.fullmatch(r"(TPU v\S+) x(\d+)", name)
    plain = pods[1] if pods else name
    from_catalogue = {"A100-40GB": "A100-SXM-40GB"}.get(plain, plain)
    return card_of(asked.file, from_catalogue), int(pods[2]) if pods else 1


_PALM = re.compile(
    r"palm-540b \((\d+) layers, hidden (\d+), MQA, (\d+) heads x (\d+)\)"
)


def _decode_model(asked: Asked) -> Architecture:
    name = str(asked.any("model", ""))
    palm = _PALM.fullmatch(name)
    if palm is None:
        return model_of(asked.file, name)
    layers, hidden, heads, width = (int(word) for word in palm.groups())
    return from_config(
        {
            "model_type": "llama",
            "num_hidden_layers": layers,
            "hidden_size": hidden,
            "num_attention_heads": heads,
            "num_key_value_heads": 1,
            "head_dim": width,
            "intermediate_size": 4 * hidden,
            "vocab_size": 256000,
            "tie_word_embeddings": True,
        },
        name,
    )


_ENGINES = {
    "TensorRT-LLM 1.0 PyTorch backend": "trtllm",
    "TensorRT-LLM 1.2 PyTorch backend": "trtllm",
}


def offline_throughput(asked: Asked) -> Prediction:
    """Output tokens per second when all requests come at once."""
    asked.note("model_note", "load")
    model, gpu = asked.model(), asked.card()
    gpus = asked.whole("gpus", 1)
    tensor, replicas = _split(asked, model, gpus)
    serving = Serving(
        weights=asked.word("weights", _WEIGHTS),
        cache=asked.word("kv_dtype", {"fp8": "fp8", "": "fp8", "bf16": "bf16"}),
        tensor=tensor,
        replicas=replicas,
        expert=replicas,
        expert_tensor=tensor,
        software=asked.word("framework", _ENGINES),
    )
    requests = Requests(asked.number("input_tokens"), asked.number("output_tokens"))
    placed = place(model, gpu, fabric_of(gpu), serving)
    load = saturated(placed, requests)
    rate = load.tokens_per_second(requests.answer) * gpus / serving.gpus
    low, high = interval("saturated")
    return between(rate, low, high)


def _split(asked: Asked, model: Architecture, gpus: int) -> tuple[int, int]:
    """Tensor parallelism and attention replicas.

    `DEP8` is data-parallel attention over 8 with split experts; mixtures on
    several GPUs are run that way also where only `tp` is given.
    """
    word = str(asked.any("parallel", ""))
    tensor = asked.whole("tp", gpus)
    match = re.fullmatch(r"(TP|DEP)(\d+)", word)
    if word and match is None:
        raise Inexpressible(f"parallel “{word}” is not known")
    if match and match[1] == "TP":
        return int(match[2]), 1
    if match:
        return 1, int(match[2])
    return (1, tensor) if model.is_routed and tensor > 1 else (tensor, 1)


def serving_tpot(asked: Asked) -> Prediction:
    """Median time per output token under a fixed number of requests [s]."""
    return between(_loaded(asked).tpot, *interval("tpot"))


def serving_ttft(asked: Asked) -> Prediction:
    """Median time to the first token under a fixed number of requests [s]."""
    return between(_loaded(asked).ttft, *interval("ttft"))


_CARDS = {
    "h100_sxm": "h100-sxm5-80",
    "h200_sxm": "h200-sxm5-141",
    "b200_sxm": "b200-sxm",
}


def _loaded(asked: Asked) -> Load:
    model = _served_model(asked)
    card = find_accelerator(asked.word("system", _CARDS))
    backend = str(asked.any("backend", "")).split(" ")[0]
    if backend not in {"vllm", "trtllm", "sglang"}:
        raise Inexpressible(f"backend “{backend}” is not known")
    replicas = asked.whole("attention_dp", 1)
    serving = Serving(
        **_formats(asked, model),
        tensor=asked.whole("tp", 1),
        replicas=replicas,
        expert=asked.whole("moe_ep", 1),
        expert_tensor=asked.whole("moe_tp", 1),
        software=backend,
    )
    each = asked.whole("batch_size_per_replica", 0)
    concurrent = each * replicas or asked.whole("concurrency")
    asked.note("concurrency")
    requests = Requests(asked.number("input_tokens"), asked.number("output_tokens"))
    placed: Placed = place(model, card, fabric_of(card), serving)
    return closed_loop(placed, requests, concurrent)


def _formats(asked: Asked, model: Architecture) -> dict[str, str]:
    """Formats of weights and cache behind a precision."""
    precision = asked.word("precision", {"fp8": "fp8", "fp4": "fp4", "int4": "int4"})
    weights = {"fp4": "nvfp4", "int4": "int4", "fp8": "fp8-block"}[precision]
    if "gpt-oss" in model.name:
        weights = "mxfp4-experts"
    elif precision == "fp8" and "llama" in model.name.lower():
        weights = "fp8"
    narrow = precision == "fp8" or "llama" in model.name.lower()
    return {"weights": weights, "cache": "fp8" if narrow else "bf16"}


def _served_model(asked: Asked) -> Architecture:
    """The model behind a hub name, from the file or from the catalogue."""
    name = str(asked.any("model", ""))
    plain = name.rpartition("/")[2].removesuffix("-Instruct").removesuffix("-FP8")
    if plain.lower() in asked.file.configs:
        return model_of(asked.file, plain.lower())
    try:
        return find_model(plain)
    except LookupError as error:
        raise Inexpressible(str(error)) from error


KINDS: dict[str, Predictor] = {
    "decode_tpot": decode_tpot,
    "offline_throughput": offline_throughput,
    "serving_tpot": serving_tpot,
    "serving_ttft": serving_ttft,
}
