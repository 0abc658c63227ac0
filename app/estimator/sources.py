"""The bibliography of formulas: what a line of the working stands on."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """A publication: title, who published it, year, https address."""

    title: str
    publisher: str
    year: int
    url: str


SOURCES: dict[str, Source] = {
    "shape": Source(
        "Configuration of the model (config.json)",
        "Hugging Face Hub",
        2026,
        "https://huggingface.co/docs/transformers/main_classes/configuration",
    ),
    "shazeer-2019": Source(
        "Fast Transformer Decoding: One Write-Head is All You Need",
        "Shazeer",
        2019,
        "https://arxiv.org/abs/1911.02150",
    ),
    "gqa-2023": Source(
        "GQA: Training Generalized Multi-Query Transformer Models",
        "Ainslie et al.",
        2023,
        "https://arxiv.org/abs/2305.13245",
    ),
    "deepseek-v2": Source(
        "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Model",
        "DeepSeek-AI",
        2024,
        "https://arxiv.org/abs/2405.04434",
    ),
    "mistral-7b": Source(
        "Mistral 7B", "Jiang et al.", 2023, "https://arxiv.org/abs/2310.06825"
    ),
    "mamba": Source(
        "Mamba: Linear-Time Sequence Modeling with Selective State Spaces",
        "Gu and Dao",
        2023,
        "https://arxiv.org/abs/2312.00752",
    ),
    "paged-attention": Source(
        "Efficient Memory Management for LLM Serving with PagedAttention",
        "Kwon et al.",
        2023,
        "https://arxiv.org/abs/2309.06180",
    ),
    "vllm-memory": Source(
        "vLLM: memory profiling at start-up",
        "vLLM project",
        2025,
        "https://docs.vllm.ai/en/latest/configuration/conserving_memory.html",
    ),
    "zero": Source(
        "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
        "Rajbhandari et al.",
        2020,
        "https://arxiv.org/abs/1910.02054",
    ),
    "megatron-optimizer": Source(
        "Megatron Core: distributed optimizer",
        "NVIDIA",
        2025,
        "https://docs.nvidia.com/megatron-core/developer-guide/latest/api-guide/dist_optimizer.html",
    ),
    "korthikanti-2022": Source(
        "Reducing Activation Recomputation in Large Transformer Models",
        "Korthikanti et al.",
        2022,
        "https://arxiv.org/abs/2205.05198",
    ),
    "megatron-2021": Source(
        "Efficient Large-Scale Language Model Training on GPU Clusters",
        "Narayanan et al.",
        2021,
        "https://arxiv.org/abs/2104.04473",
    ),
    "flash-attention": Source(
        "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness",
        "Dao et al.",
        2022,
        "https://arxiv.org/abs/2205.14135",
    ),
    "fsdp": Source(
        "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel",
        "Zhao et al.",
        2023,
        "https://arxiv.org/abs/2304.11277",
    ),
    "adam-8bit": Source(
        "8-bit Optimizers via Block-wise Quantization",
        "Dettmers et al.",
        2021,
        "https://arxiv.org/abs/2110.02861",
    ),
    "adafactor": Source(
        "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost",
        "Shazeer and Stern",
        2018,
        "https://arxiv.org/abs/1804.04235",
    ),
    "muon": Source(
        "Muon is Scalable for LLM Training",
        "Liu et al.",
        2025,
        "https://arxiv.org/abs/2502.16982",
    ),
    "lora": Source(
        "LoRA: Low-Rank Adaptation of Large Language Models",
        "Hu et al.",
        2021,
        "https://arxiv.org/abs/2106.09685",
    ),
    "qlora": Source(
        "QLoRA: Efficient Finetuning of Quantized LLMs",
        "Dettmers et al.",
        2023,
        "https://arxiv.org/abs/2305.14314",
    ),
    "gptq": Source(
        "GPTQ: Accurate Post-Training Quantization for Generative Transformers",
        "Frantar et al.",
        2022,
        "https://arxiv.org/abs/2210.17323",
    ),
    "awq": Source(
        "AWQ: Activation-aware Weight Quantization",
        "Lin et al.",
        2023,
        "https://arxiv.org/abs/2306.00978",
    ),
    "ocp-mx": Source(
        "OCP Microscaling Formats (MX) Specification v1.0",
        "Open Compute Project",
        2023,
        "https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf",
    ),
    "nvfp4": Source(
        "Introducing NVFP4 for Efficient and Accurate Low-Precision Inference",
        "NVIDIA",
        2025,
        "https://developer.nvidia.com/blog/introducing-nvfp4-for-efficient-and-accurate-low-precision-inference/",
    ),
    "gguf": Source(
        "llama.cpp: quantize",
        "ggml-org",
        2026,
        "https://github.com/ggml-org/llama.cpp/blob/master/tools/quantize/README.md",
    ),
    "pope-2022": Source(
        "Efficiently Scaling Transformer Inference",
        "Pope et al.",
        2022,
        "https://arxiv.org/abs/2211.05102",
    ),
    "mig-guide": Source(
        "Multi-Instance GPU User Guide",
        "NVIDIA",
        2026,
        "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",
    ),
    "catalogue": Source(
        "Vendor data sheets, as named at each entry of the catalogue",
        "The vendors",
        2026,
        "https://www.nvidia.com/en-us/data-center/",
    ),
    "erlang-1917": Source(
        "Probabilities of significance in automatic telephone exchanges",
        "Erlang",
        1917,
        "https://oldwww.com.dtu.dk/teletraffic/Erlang.html",
    ),
    "allen-cunneen": Source(
        "Probability, Statistics, and Queueing Theory (Allen–Cunneen approximation)",
        "Allen",
        1990,
        "https://doi.org/10.1016/C2009-0-22279-3",
    ),
    "little-1961": Source(
        "A Proof for the Queuing Formula: L = λW",
        "Little",
        1961,
        "https://doi.org/10.1287/opre.9.3.383",
    ),
    "young-1974": Source(
        "A first order approximation to the optimum checkpoint interval",
        "Young",
        1974,
        "https://doi.org/10.1145/361147.361115",
    ),
    "daly-2006": Source(
        "A higher order estimate of the optimum checkpoint interval for restart dumps",
        "Daly",
        2006,
        "https://doi.org/10.1016/j.future.2004.11.016",
    ),
    "nccl-tests": Source(
        "Performance reported by NCCL tests",
        "NVIDIA",
        2024,
        "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md",
    ),
    "ml-engineering": Source(
        "Machine Learning Engineering Open Book: network",
        "Bekman",
        2026,
        "https://github.com/stas00/ml-engineering/blob/master/network/README.md",
    ),
    "aiconfigurator": Source(
        "AIConfigurator: measured operator tables",
        "NVIDIA",
        2026,
        "https://github.com/ai-dynamo/aiconfigurator",
    ),
    "inferencex": Source(
        "InferenceX: latencies under load, as published with AIConfigurator",
        "SemiAnalysis",
        2026,
        "https://github.com/ai-dynamo/aiconfigurator/blob/main/aic-core/src/aiconfigurator_core/systems/silicon_sample.csv",
    ),
    "trtllm-overview": Source(
        "TensorRT-LLM performance overview",
        "NVIDIA",
        2025,
        "https://github.com/NVIDIA/TensorRT-LLM/blob/main/docs/source/developer-guide/perf-overview.md",
    ),
    "leviathan-2023": Source(
        "Fast Inference from Transformers via Speculative Decoding",
        "Leviathan et al.",
        2023,
        "https://arxiv.org/abs/2211.17192",
    ),
    "williams-2009": Source(
        "Roofline: An Insightful Visual Performance Model",
        "Williams et al.",
        2009,
        "https://doi.org/10.1145/1498765.1498785",
    ),
    "palm": Source(
        "PaLM: Scaling Language Modeling with Pathways",
        "Chowdhery et al.",
        2022,
        "https://arxiv.org/abs/2204.02311",
    ),
    "kaplan-2020": Source(
        "Scaling Laws for Neural Language Models",
        "Kaplan et al.",
        2020,
        "https://arxiv.org/abs/2001.08361",
    ),
    "megatron-2019": Source(
        "Megatron-LM: Training Multi-Billion Parameter Language Models",
        "Shoeybi et al.",
        2019,
        "https://arxiv.org/abs/1909.08053",
    ),
    "megatron-bridge": Source(
        "Megatron Bridge: performance summary",
        "NVIDIA",
        2026,
        "https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/main/docs/performance-summary.md",
    ),
    "llm-foundry": Source(
        "MPT training benchmarks",
        "MosaicML",
        2024,
        "https://github.com/mosaicml/llm-foundry/blob/main/scripts/train/benchmarking/README.md",
    ),
    "zero-bubble": Source(
        "Zero Bubble Pipeline Parallelism",
        "Qi et al.",
        2023,
        "https://arxiv.org/abs/2401.10241",
    ),
    "ring-attention": Source(
        "Ring Attention with Blockwise Transformers for Near-Infinite Context",
        "Liu et al.",
        2023,
        "https://arxiv.org/abs/2310.01889",
    ),
    "deepseek-insights": Source(
        "Insights into DeepSeek-V3: Scaling Challenges and Reflections on Hardware",
        "DeepSeek-AI",
        2025,
        "https://arxiv.org/abs/2505.09343",
    ),
    "llama-1": Source(
        "LLaMA: Open and Efficient Foundation Language Models",
        "Touvron et al.",
        2023,
        "https://arxiv.org/abs/2302.13971",
    ),
    "llama-2": Source(
        "Llama 2: Open Foundation and Fine-Tuned Chat Models",
        "Touvron et al.",
        2023,
        "https://arxiv.org/abs/2307.09288",
    ),
    "llama-3": Source(
        "The Llama 3 Herd of Models",
        "Meta",
        2024,
        "https://arxiv.org/abs/2407.21783",
    ),
    "mlperf-storage": Source(
        "MLPerf Storage: submission guidelines",
        "MLCommons",
        2025,
        "https://github.com/mlcommons/storage/blob/main/Submission_guidelines.md",
    ),
    "leiserson-1985": Source(
        "Fat-Trees: Universal Networks for Hardware-Efficient Supercomputing",
        "Leiserson",
        1985,
        "https://doi.org/10.1109/TC.1985.6312192",
    ),
    "superpod-h100": Source(
        "DGX SuperPOD with DGX H100: network fabrics, table 4",
        "NVIDIA",
        2023,
        "https://docs.nvidia.com/dgx-superpod/reference-architecture-scalable-infrastructure-h100/latest/network-fabrics.html",
    ),
    "superpod-b200": Source(
        "DGX SuperPOD with DGX B200: architecture, table 3",
        "NVIDIA",
        2024,
        "https://docs.nvidia.com/dgx-superpod/reference-architecture-scalable-infrastructure-b200/latest/dgx-superpod-architecture.html",
    ),
    "superpod-b300-xdr": Source(
        "DGX SuperPOD with DGX B300 and Quantum-X800: architecture, table 3",
        "NVIDIA",
        2025,
        "https://docs.nvidia.com/dgx-superpod/reference-architecture/scalable-infrastructure-b300-xdr/latest/dgx-superpod-architecture.html",
    ),
    "basepod": Source(
        "DGX BasePOD reference architecture: the networks",
        "NVIDIA",
        2025,
        "https://docs.nvidia.com/dgx-basepod/reference-architecture-infrastructure-foundation-enterprise-ai/latest/reference-architectures.html",
    ),
    "kokolis-2025": Source(
        "Revisiting Reliability in Large-Scale Machine Learning Research Clusters",
        "Kokolis et al.",
        2025,
        "https://arxiv.org/abs/2410.21680",
    ),
    "latif-2025": Source(
        "Single-Node Power Demand During AI Training",
        "Latif et al.",
        2025,
        "https://escholarship.org/uc/item/6rm197hd",
    ),
    "ieee-1459": Source(
        "IEEE 1459: Definitions for the Measurement of Electric Power Quantities",
        "IEEE",
        2010,
        "https://standards.ieee.org/ieee/1459/4471/",
    ),
    "iso-30134-2": Source(
        "ISO/IEC 30134-2: Power usage effectiveness (PUE)",
        "ISO/IEC",
        2016,
        "https://www.iso.org/standard/63451.html",
    ),
    "ashrae-datacom": Source(
        "Thermal Guidelines for Data Processing Environments",
        "ASHRAE TC 9.9",
        2021,
        "https://www.ashrae.org/technical-resources/bookstore/datacom-series",
    ),
    "dgx-h100-guide": Source(
        "DGX H100 user guide: power and air flow",
        "NVIDIA",
        2024,
        "https://docs.nvidia.com/dgx/dgxh100-user-guide/introduction-to-dgxh100.html",
    ),
    "barroso-2018": Source(
        "The Datacenter as a Computer, third edition: modelling costs",
        "Barroso, Hölzle and Ranganathan",
        2018,
        "https://doi.org/10.2200/S00874ED3V01Y201809CAC046",
    ),
    "deepseek-v3": Source(
        "DeepSeek-V3 Technical Report, table 1",
        "DeepSeek-AI",
        2024,
        "https://arxiv.org/abs/2412.19437",
    ),
    "nfpa-70": Source(
        "NFPA 70: National Electrical Code, continuous loads",
        "NFPA",
        2023,
        "https://www.nfpa.org/codes-and-standards/nfpa-70-standard-development/70",
    ),
    "pytorch-async": Source(
        "Reducing Model Checkpointing Times with Asynchronous Checkpointing",
        "PyTorch",
        2024,
        "https://pytorch.org/blog/reducing-checkpointing-times/",
    ),
}
