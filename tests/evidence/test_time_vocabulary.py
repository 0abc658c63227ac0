"""Every word of the case format about time, serving and planning can be read.

A case is put to a calculator; that one may still say that nothing of it fits.
"""

import json

import pytest

from evidence.accuracy.report import CaseResult, compute_report

CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
MIXTURE = {
    **CONFIG,
    "model_type": "qwen3_moe",
    "num_experts": 64,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1024,
}
TITAN = "torchtitan FSDP2, bf16 mixed precision (fp32 master shards), AdamW"
BASE_RUN = {"model": "dense", "gpus": 64, "seq": 4096, "gpu": "H100-SXM-80GB"}
BASE_SERVED = {
    "model": "Qwen/Qwen3-32B",
    "system": "h100_sxm",
    "backend": "vllm 0.12.0",
    "precision": "fp8",
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
    "batch_size_per_replica": 8,
    "tp": 2,
    "attention_dp": 1,
    "moe_tp": 2,
    "moe_ep": 1,
}


def runs() -> list[tuple[str, dict[str, object]]]:
    """One case per framework, card, precision and way to save memory."""
    frameworks = [
        "DeepSpeed ZeRO-3 2021",
        "Megatron-Bridge / NeMo 26.04.01",
        "Megatron-Bridge / NeMo 26.06",
        "Megatron-Bridge / NeMo 26.08",
        "Megatron-LM 2021, fp16, interleaved 1F1B where pp>1",
        "Megatron-LM PTD-P",
        "MosaicML Composer FSDP + flash attention",
        "torchtitan",
        "torchtitan 2025-06, vanilla TP",
        TITAN,
        f"{TITAN}, async TP",
        f"{TITAN}, async TP, 1F1B",
        f"{TITAN}, async TP, interleaved 1F1B",
    ]
    bridge = {**BASE_RUN, "framework": frameworks[2], "global_batch": 256}
    found: list[tuple[str, dict[str, object]]] = [
        ("train_throughput", {**BASE_RUN, "framework": f, "global_batch": 256}) for f in frameworks
    ]
    cards = ["A100-SXM-80GB", "B200-SXM-180GB", "GB200", "H100-SXM-96GB-HBM2e-500W"]
    found += [("train_throughput", {**bridge, "gpu": card}) for card in cards]
    for words in (
        {"precision": "FP8"},
        {"precision": "MXFP8"},
        {"precision": "amp_bf16"},
        {"precision": "bf16"},
        {"quant": "float8 tensorwise"},
        {"float8": True, "compile": False},
        {"fsdp": "64"},
        {"fsdp": 0},
        {"zero_stage": 3},
        {"activation_checkpointing": "selective op"},
        {"activation_checkpointing": "full", "local_batch": 4},
        {"activation_checkpointing": True, "microbatch": 4, "grad_accum": 1},
        {"vp": None, "ep": None, "pp": 4, "tp": 2, "cp": 2},
        {"model": "mixture", "ep": 8},
        {"sharding": "FULL_SHARD", "recompute": "full"},
    ):
        found.append(("train_throughput", {**bridge, **words}))
    found.append(
        (
            "train_throughput",
            {**bridge, "gpu": "B200-SXM-180GB", "precision": "NVFP4"},
        )
    )
    steps = ["Megatron-DeepSpeed", "Megatron-LM 2022, fp16"]
    sizes = {"layers": 48, "heads": 64, "hidden": 6144, "vocab": 51200}
    for framework in steps:
        words = {**BASE_RUN, **sizes, "tp": 8, "framework": framework}
        words |= {"recompute": "selective", "global_batch": 64, "interleave": 2}
        words |= {"sequence_parallel": True, "model": "mt-nlg-530b", "pp": 8}
        found.append(("train_step_time", words))
    return found


def served() -> list[tuple[str, dict[str, object]]]:
    """One case per model, system, backend and precision."""
    models = [
        "MiniMaxAI/MiniMax-M2.5",
        "Qwen/Qwen3-235B-A22B-FP8",
        "Qwen/Qwen3-32B",
        "Qwen/Qwen3.5-397B-A17B",
        "deepseek-ai/DeepSeek-R1",
        "meta-llama/Llama-3.1-70B",
        "meta-llama/Llama-3.1-8B-Instruct",
        "moonshotai/Kimi-K2.5",
        "openai/gpt-oss-120b",
    ]
    words: list[dict[str, object]] = [{"model": model} for model in models]
    words += [{"system": s} for s in ("b200_sxm", "h100_sxm", "h200_sxm")]
    words += [
        {"backend": b} for b in ("sglang 0.5.9", "trtllm 1.2.0rc6.post3", "trtllm nan", "vllm nan")
    ]
    words += [{"precision": "fp4", "system": "b200_sxm"}, {"precision": "int4"}]
    words += [{"system": "mi300x"}]
    words += [{"system": s, "precision": "bf16"} for s in ("a100_sxm4_40gb", "a100_sxm4_80gb")]
    words += [{"shortest": 0.8, "kv_dtype": "bf16", "polling": 30}]
    words += [{"load": "all at once; the prompts are in the time"}]
    words += [{"concurrency": None}, {"attention_dp": 4, "moe_ep": 8, "moe_tp": 1}]
    return [
        (kind, {**BASE_SERVED, **word})
        for kind in ("serving_tpot", "serving_ttft")
        for word in words
    ]


def others() -> list[tuple[str, dict[str, object]]]:
    """Collectives, decoding, full servers and hours."""
    found: list[tuple[str, dict[str, object]]] = []
    systems = [
        "AWS P6-B200 (NVLink5 900 GB/s + 50 GB/s EFA per GPU)",
        "AWS P6-B200 (NVLink5 900 GB/s/GPU one way)",
        "MI300X (Infinity Fabric 64 GB/s x 7 links)",
        "a100_sxm",
        "b200_sxm",
        "gb200",
        "h100_sxm",
        "h200_sxm",
        "l40s",
    ]
    for system in systems:
        for operation in ("all_gather", "all_reduce", "alltoall", "reduce_scatter"):
            words = {"op": operation, "gpus": 8, "message_bytes": 2**25}
            found.append(("collective_time", {**words, "system": system}))
    four = {"op": "all_reduce", "gpus": 32, "nodes": 4, "message_bytes": 2**30}
    found.append(("collective_time", {**four, "system": systems[0]}))
    weights = ["awq_int4_g128", "bf16", "fp16", "gptq_int4_g128", "gptq_int8_g128"]
    weights += ["int4_g32_weight_only", "int8", "int8_weight_only"]
    decode = {"model": "dense", "batch": 1, "context": 200, "gpu": "A100-SXM-80GB"}
    found += [("decode_tpot", {**decode, "weights": w}) for w in weights]
    found += [
        ("decode_tpot", {**decode, "gpu": g, "framework": f})
        for g in ("V100-SXM2-32GB", "TPU v4 x64")
        for f in ("gpt-fast", "vLLM 0.6.3")
    ]
    palm = "palm-540b (118 layers, hidden 18432, MQA, 48 heads x 256)"
    found.append(("decode_tpot", {**decode, "model": palm, "gpu": "TPU v4 x64", "batch": 64}))
    full = {
        "gpus": 2,
        "gpu": "H200-SXM-141GB",
        "input_tokens": 1000,
        "output_tokens": 1000,
        "load": "all requests at once",
        "requests": 3000,
        "framework": "TensorRT-LLM 1.2 PyTorch backend",
    }
    for words in (
        {"model": "dense", "weights": "fp8", "tp": 2, "kv_dtype": "fp8"},
        {"model": "mixture", "weights": "fp8_block128", "parallel": "DEP4", "gpus": 4},
        {"model": "mixture", "weights": "mxfp4", "parallel": "TP2"},
        {"model": "dense", "weights": "nvfp4", "tp": 1, "gpu": "B200-SXM-180GB"},
    ):
        found.append(("offline_throughput", {**full, **words}))
    hours = {"model": "dense", "tokens": 1e12, "gpu": "H800-SXM-80GB"}
    found.append(("train_gpu_hours", hours))
    laid_out = {"gpus": 64, "seq": 4096, "network": "efa", "framework": "not stated"}
    found.append(("train_gpu_hours", {**hours, **laid_out}))
    return found


CASES = runs() + served() + others()


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CaseResult]:
    path = tmp_path_factory.mktemp("cases") / "cases.json"
    content = {
        "models": {"dense": {"config": CONFIG}, "mixture": {"config": MIXTURE}},
        "cases": [
            {
                "id": str(number),
                "kind": kind,
                "inputs": inputs,
                "expected": {"value": 1.0, "unit": ""},
            }
            for number, (kind, inputs) in enumerate(CASES)
        ],
    }
    path.write_text(json.dumps(content))
    return {result.id: result for result in compute_report([path]).results}


def test_the_case_can_be_expressed(asked: dict[str, CaseResult], subtests: pytest.Subtests) -> None:
    for number in range(len(CASES)):
        with subtests.test(number=number):
            result = asked[str(number)]
            assert result.estimate, (CASES[number], result.why_not)
            settled = "No load settles." in (result.why_not or "No load settles.")
            assert settled, (CASES[number], result.why_not)
