"""What plain generation in Transformers takes on a GPU of one's own, as cases.

Run `python -m benchmarks.generate_memory h100-sxm5-80`, with the name that the catalog
has for the GPU, where PyTorch and Transformers are: Headroom installs neither. It makes
a model of the shape of Llama 3.1 8B with random weights, whose memory is that of
trained ones, and prints the peaks as a file that `python -m evidence.accuracy FILE`
answers.
"""

import json
import sys

import torch  # type: ignore[import-not-found,unused-ignore]
import transformers  # type: ignore[import-not-found,unused-ignore]

_SHAPE = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "max_position_embeddings": 131072,
}
_ANSWER = 64  # tokens
_ASKED = ((1, 1024), (8, 1024), (32, 1024), (8, 4096), (1, 16384))
"""Sequences at once, and the tokens of each prompt."""


def main(gpu: str) -> None:
    """Measure each load after the other."""
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**_SHAPE))
    model.eval()
    cases = [_case(gpu, *asked, _peak(model, *asked)) for asked in _ASKED]
    print(json.dumps({"cases": cases}, indent=1))


@torch.inference_mode()  # type: ignore[untyped-decorator,unused-ignore]
def _peak(model: "transformers.LlamaForCausalLM", sequences: int, prompt: int) -> int:
    """Bytes that PyTorch had allocated at most, weights and all."""
    asked = torch.randint(10, 1000, (sequences, prompt), device="cuda")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model.generate(
        asked,
        attention_mask=torch.ones_like(asked),
        min_new_tokens=_ANSWER,
        max_new_tokens=_ANSWER,
        do_sample=False,
        pad_token_id=0,
    )
    return int(torch.cuda.max_memory_allocated())


def _case(gpu: str, sequences: int, prompt: int, peak: int) -> dict[str, object]:
    software = f"PyTorch {torch.__version__}, Transformers {transformers.__version__}"
    return {
        "id": f"inference_memory/own/llama-3.1-8b-bf16-{sequences}x{prompt}",
        "kind": "inference_memory",
        "inputs": {
            "model": "llama-3.1-8b",
            "weights": "bf16",
            "input_tokens": prompt,
            "output_tokens": _ANSWER,
            "batch": sequences,
            "framework": "HF transformers",
            "gpu": gpu,
            "gpus": 1,
        },
        "expected": {"value": peak, "unit": "bytes"},
        "tolerance": {"rel": 0.05},
        "source": f"benchmarks/generate_memory.py ({software})",
    }


if __name__ == "__main__":
    main(sys.argv[1])
