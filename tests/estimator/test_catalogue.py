"""The catalog: every value has a source and a date, and means what it says."""

import json

import pytest

from app.estimator import data_files as catalogue
from app.estimator.data_files import UnsourcedEntryError
from app.estimator.hardware.catalog import (
    find_accelerator,
    find_accelerator_id,
    find_network_part,
    find_reference_design,
    find_system,
    list_accelerators,
    list_network_parts,
    list_reference_designs,
    list_systems,
)
from app.estimator.models.lookup import find_model, list_models
from app.estimator.registry import run_estimate

TABLES = [
    ("accelerators.toml", "accelerator"),
    ("systems.toml", "system"),
    ("systems.toml", "reference_architecture"),
    ("networks.toml", "network"),
    ("models.toml", "model"),
    ("mig.toml", "card"),
]


def test_every_entry_says_where_it_comes_from_and_when(
    subtests: pytest.Subtests,
) -> None:
    for file, table in TABLES:
        with subtests.test(file=file, table=table):
            rows = catalogue.load_table_entries_by_id(file, table)
            assert rows
            for row in rows.values():
                assert all(address.startswith("https://") for address in row["source"])
                assert row["read_on"].year >= 2025


@pytest.mark.parametrize(
    "missing", [{"source": []}, {"source": [""]}, {"read_on": None}, {"read_on": "now"}]
)
def test_an_entry_without_source_or_date_does_not_load(missing: dict) -> None:
    row = dict(catalogue.load_table_entries_by_id("models.toml", "model")["llama-2-7b"]) | missing
    with pytest.raises(UnsourcedEntryError):
        catalogue.require_sourced_row(row, "models.toml")


def test_ids_are_unique(subtests: pytest.Subtests) -> None:
    for file, table in TABLES:
        with subtests.test(file=file, table=table):
            text = (catalogue.DATA / file).read_text()
            block = text.count(f"[[{table}]]")
            assert len(catalogue.load_table_entries_by_id(file, table)) == block


def test_there_are_as_many_entries_as_promised() -> None:
    assert len(list_accelerators()) >= 40
    assert len(list_systems()) >= 10
    assert len(list_network_parts()) >= 24
    assert len(list_models()) >= 80


# Whose makers print other steps from one format to the next: FP8 over BF16, FP4 over
# FP8. Their units for narrow formats are not the wide ones cut in two. GeForce cards halve
# the rates of FP8 and 16 bit with FP32 accumulation, but not that of FP4.
STEPS = {
    "rubin-gpu": (4.375, 2.0),
    "trainium3": (2517 / 671, 1.0),
    "rtx-5090": (2.0, 4.0),
    "rtx-5080": (2.0, 4.0),
}


def test_rates_of_a_card_are_dense_and_ordered(subtests: pytest.Subtests) -> None:
    for card in list_accelerators():
        with subtests.test(card.id):
            if card.id in STEPS:
                assert (card.fp8 / card.bf16, card.fp4 / card.fp8) == STEPS[card.id]
                continue
            if card.bf16 and card.fp8:
                assert 0.99 <= card.fp8 / card.bf16 <= 2.05
            if card.fp8 and card.fp4:
                assert 1.5 <= card.fp4 / card.fp8 <= 3.5
            assert card.memory is None or 1e8 < card.memory < 1e12
            assert card.nvlink_both_ways is None or card.nvlink_both_ways == 2 * card.nvlink


def test_unverified_fields_are_fields(subtests: pytest.Subtests) -> None:
    for card in list_accelerators():
        with subtests.test(card.id):
            known = set(
                catalogue.load_table_entries_by_id("accelerators.toml", "accelerator")[card.id]
            )
            listed = set(card.unverified)
            assert listed <= known | {
                "fp4_tflops_dense",
                "int8_tops_dense",
                "launch_year",
            }


def test_names_in_use_find_their_card(subtests: pytest.Subtests) -> None:
    for name, found in [
        ("H100", "h100-sxm5-80"),
        ("NVIDIA H100 SXM5 80GB", "h100-sxm5-80"),
        ("h100_sxm", "h100-sxm5-80"),
        ("A100-SXM-80GB", "a100-sxm4-80"),
        ("RTX 4090", "rtx-4090"),
        ("B200-SXM-180GB", "b200-sxm"),
        ("TPU v5e", "tpu-v5e"),
    ]:
        with subtests.test(name=name, found=found):
            assert find_accelerator_id(name) == found


def test_a_card_of_your_own_is_its_values() -> None:
    card = find_accelerator("24GB, 0.936 TB/s, 71 TFLOPS, FP8 142 TFLOPS, NVLink 56 GB/s, 350 W")

    assert (card.memory, card.memory_bandwidth, card.bf16, card.fp8) == (24e9, 936e9, 71e12, 142e12)
    assert (card.nvlink, card.tdp) == (56e9, 350)
    assert find_accelerator_id(card.id) == card.id


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("24 GB, fast", "“fast” of this card cannot be read"),
        ("936 GB/s", "needs its memory"),
        ("99999999 GB", "needs its memory"),
        ("24 GB, FP8 900 GB/s", "cannot be read"),
        ("24 GB, 0 GB/s", "zero or larger than any card's"),
        ("A100 80 GB", "nearest: a100-sxm4-80"),
    ],
)
def test_a_card_of_your_own_that_cannot_be_is_refused(typed: str, reason: str) -> None:
    with pytest.raises(LookupError, match=reason):
        find_accelerator_id(typed)


def test_a_card_of_your_own_works_where_a_card_is_asked_for(subtests: pytest.Subtests) -> None:
    typed = {"gpu": "8x 80 GB, 3.3 TB/s, 900 TFLOPS, FP8 1.8 PFLOPS, NVLink 450 GB/s, 700 W"}
    for name in ("inference-memory", "training-memory", "training-time", "collectives"):
        with subtests.test(name):
            assert run_estimate(name, typed).figures
    one = {"gpu": "80 GB, 3.3 TB/s, 900 TFLOPS", "model": "8B"}
    for name in ("latency", "serving-capacity", "parallelism-plan"):
        with subtests.test(name):
            assert run_estimate(name, one).figures


def test_an_unknown_card_names_its_nearest() -> None:
    with pytest.raises(LookupError, match="h100-sxm5-80"):
        find_accelerator_id("h100-sxm5-90")


def test_values_are_in_base_units() -> None:
    h100 = find_accelerator("H100")
    assert (h100.memory, h100.memory_bandwidth, h100.bf16) == (80e9, 3.35e12, 989.4e12)
    assert (h100.nvlink, h100.tdp, h100.pcie_bandwidth) == (450e9, 700, 63e9)
    dgx = find_system("DGX H100")
    assert (dgx.gpus, dgx.nic, dgx.power) == (8, 50e9, 10_200)
    assert find_network_part("qm9700").port_rate == 50e9
    assert find_reference_design("dgx-superpod-h100").gpus_per_unit == 256


def test_a_b200_is_sold_as_180_gb() -> None:
    assert find_accelerator("B200").memory == 180e9


POSITIONS = {  # config.json of the checkpoint that each entry names as its source.
    "llama-3.2-1b": 131_072,
    "codellama-34b": 16_384,
    "llama-3.2-3b": 131_072,
    "qwen3-32b": 40_960,
    "qwen3-235b-a22b": 40_960,  # The 2507 edition takes 262,144.
    "qwen3-coder-480b-a35b": 262_144,
    "qwen2.5-3b": 32_768,
    "qwen2.5-7b": 131_072,  # Its Instruct edition takes 32,768.
    "mistral-7b-v0.1": 32_768,
    "mixtral-8x22b": 65_536,
    "deepseek-r1": 163_840,
    "kimi-k2": 131_072,
    "gemma-2-9b": 8_192,
    "phi-3-mini": 4_096,
    "phi-4": 16_384,
    "gpt-j-6b": 2_048,
    "jamba-v0.1": 262_144,
}


def test_positions_are_those_of_the_published_configuration(subtests: pytest.Subtests) -> None:
    for model, positions in POSITIONS.items():
        with subtests.test(model=model):
            assert find_model(model).max_context == positions


def test_a_model_says_how_long_a_context_it_takes() -> None:
    without_positions = {
        "mamba-2.8b",  # Recurrent layers.
        "mamba2-2.7b",
        "bloom-560m",  # ALiBi.
        "bloom-176b",
        "flan-t5-xxl",  # Relative biases.
        "whisper-large-v3",  # Hears 30 seconds at a time.
        "glm-4-9b-hf",  # Not known: the chat edition takes 131,072.
    }
    unlimited = {model.id for model in list_models() if not find_model(model.id).max_context}
    assert unlimited == without_positions


def test_a_stated_model_length_replaces_the_positions() -> None:
    config = {"model_type": "cohere", "hidden_size": 8192, "num_hidden_layers": 40}
    config |= {"num_attention_heads": 64, "intermediate_size": 22528, "vocab_size": 256000}
    config |= {"max_position_embeddings": 8192}
    assert find_model(json.dumps(config)).max_context == 8_192
    config |= {"model_max_length": 131_072}
    assert find_model(json.dumps(config)).max_context == 131_072
    assert find_model("command-r-plus").max_context == 131_072


def test_every_system_and_design_can_be_read() -> None:
    assert all(find_accelerator(s.accelerator) for s in list_systems())
    assert {d.id for d in list_reference_designs()} >= {"dgx-basepod", "dgx-superpod-h100"}


def test_parts_of_a_model_sum_to_the_whole(subtests: pytest.Subtests) -> None:
    for key in [key for key, _ in list_models()]:
        with subtests.test(key=key):
            model = find_model(key)
            assert sum(model.parameters_by_part().values()) == model.parameters
            assert 0 < model.active_parameters <= model.parameters
