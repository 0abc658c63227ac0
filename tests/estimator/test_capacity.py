"""What a card, an instance and a system hold, beside what their labels say."""

import pytest

from app.estimator import data_files as catalogue
from app.estimator.data_files import UnsourcedEntryError
from app.estimator.estimates.inference_memory import InferenceMemoryInputs
from app.estimator.estimates.mig import MigInputs, find_mig_gpu, list_mig_gpu_ids
from app.estimator.hardware.catalog import find_accelerator, find_system, list_accelerators
from app.estimator.hardware.part_values import find_part
from app.estimator.inputs import InvalidInputsError, input_specs
from app.estimator.registry import run_estimate
from app.estimator.result import StackedBar
from app.widgets.bar_charts import draw_stacked_bar


# What drivers print as total [MiB], each in the listing that the entry names.
def test_a_card_holds_what_its_driver_prints(subtests: pytest.Subtests) -> None:
    for name, shown in [
        ("H100", 81559),
        ("H200", 143771),
        ("B200", 183359),
        ("GB200", 189471),
        ("B300", 275040),
        ("GB300", 284208),
        ("L40S", 46068),
        ("MI300X", 196592),
        ("RTX 4090", 24564),
    ]:
        with subtests.test(name=name, shown=shown):
            card = find_accelerator(name)
            assert card.capacity == card.driver_memory == shown * 2**20
            assert card.memory < card.capacity


def test_programs_get_less_than_the_driver_prints(subtests: pytest.Subtests) -> None:
    # Totals of PyTorch in public logs, in GiB; the sources are at the cards.
    for name, total in [
        ("L40S", 44.53),
        ("L4", 22.05),
        ("A10", 21.99),
        ("H100 NVL", 93.0),
        ("RTX 5090", 31.36),
        ("RTX PRO 6000", 94.97),
        ("A800", 79.32),
    ]:
        with subtests.test(name=name, total=total):
            card = find_accelerator(name)
            assert card.engine_visible_memory == pytest.approx(total * 2**30, rel=1e-9)
            assert 0.97 * card.driver_memory < card.engine_visible_memory < card.driver_memory
    most = run_estimate("inference-memory", {"gpu": "l40s", "model": "llama-3.1-8b"})
    (bar,) = most.pictures
    assert bar.capacity == pytest.approx(0.9 * 44.53 * 2**30)


def test_a_reading_lies_near_its_label_and_has_a_source(
    subtests: pytest.Subtests,
) -> None:
    for card in list_accelerators():
        with subtests.test(card.id):
            read = (card.driver_memory, card.engine_memory)
            if not any(read):
                assert card.capacity == card.engine_visible_memory == (card.memory or 0.0)
                assert not card.memory_source
                continue
            assert all(address.startswith("https://") for address in card.memory_source)
            assert card.memory_read_on >= "2026"
            assert all(0.98 <= value / card.memory < 1.1 for value in read if value)
            assert card.engine_visible_memory <= card.capacity


def test_a_reading_without_source_does_not_load() -> None:
    row = dict(catalogue.load_table_entries_by_id("accelerators.toml", "accelerator")["l4"])
    del row["memory_source"]
    with pytest.raises(UnsourcedEntryError, match="reading"):
        catalogue.require_sourced_row(row, "accelerators.toml")


def test_a_system_holds_what_its_cards_hold() -> None:
    dgx = find_system("DGX H100")
    assert (dgx.gpu_memory, dgx.capacity) == (640e9, 8 * 81559 * 2**20)


def test_every_reading_of_an_instance_has_a_source_and_lies_below_its_card() -> None:
    for key in list_mig_gpu_ids():
        card, row = find_mig_gpu(key), catalogue.load_table_entries_by_id("mig.toml", "card")[key]
        for profile in card.profiles:
            assert profile.program_visible_bytes <= find_accelerator(key).engine_visible_memory
            if profile.is_whole_gpu:
                assert profile.program_visible_bytes == find_accelerator(key).engine_visible_memory
            elif profile.reported_memory:
                assert row["memory_source"]
                assert (
                    0.8 * profile.memory_in_name
                    < profile.reported_memory
                    < 1.1 * profile.memory_in_name
                )


def test_an_8b_model_trains_fully_on_one_h200() -> None:
    """An H200 prints 143,771 MiB, its label says 141 GB (sglang issue 3196)."""
    found = run_estimate("training-memory", {"model": "llama-3.1-8b", "gpu": "h200", "gpus": 1})
    assert found["fits"].value is True
    assert found["per_gpu"].value < 143771 * 2**20


# The pages of Google on TPU7x and on TPU v4 and the guides of AWS to the
# architecture of Trainium2 and Trainium3 print GiB.
def test_a_size_that_is_published_in_gib_is_taken_as_gib(
    subtests: pytest.Subtests,
) -> None:
    for name, gib in [
        ("tpu-v4", 32),
        ("tpu-v5p", 95),
        ("tpu-v6e", 32),
        ("tpu-v7x", 192),
        ("trainium2", 96),
        ("trainium3", 144),
    ]:
        with subtests.test(name=name, gib=gib):
            assert find_accelerator(name).capacity == gib * 2**30
            part = find_part(name)
            assert part is not None
            assert part["memory"].other_convention == f"{gib}\u00a0GiB"


def test_a_system_names_a_driver_only_where_one_was_read() -> None:
    for name, words in (("dgx-h100", "drivers"), ("vera-rubin-nvl72", "labels")):
        part = find_part(name)
        assert part is not None
        assert f"the {words} of its accelerators" in part["capacity"].other_convention


def test_an_engine_takes_its_share_of_what_a_program_is_shown() -> None:
    """vLLM prints 79.10 GiB for an H100 (trl issue 2688): nine tenths are 71.19."""
    found = run_estimate("inference-memory", {"engine": "vllm-0.9", "gpu": "h100", "model": "8B"})
    usable = next(step for step in found.steps if step.label == "Usable")
    assert usable.value == pytest.approx(71.19 * 2**30, rel=1e-4)


def test_programs_on_an_a100_with_80_gb_see_less_than_its_driver_prints() -> None:
    """PyTorch prints 79.2 GiB with driver 580, and 79.25 GiB with two digits."""
    card = find_accelerator("a100-sxm4-80")
    assert card.engine_visible_memory == 79.25 * 2**30 < card.capacity == 80 * 2**30


def test_a_gb200_has_the_instances_that_its_driver_lists() -> None:
    """Seven of 1g.23gb, each of 22.00 GiB (mig-parted issue 227)."""
    found = run_estimate("mig", {"gpu": "gb200", "instances": "7x 1g.23gb"})
    assert found["fits"].value is True
    assert found["memory"].value == 7 * 22 * 2**30


def test_partitions_begin_with_profiles_that_large_cards_have(
    subtests: pytest.Subtests,
) -> None:
    """4/8, 2/8 and 1/8 of the memory: Multi-Instance GPU User Guide, its tables."""
    for gpu in ["a100-sxm4-40", "h100", "h200", "b200", "gb200"]:
        with subtests.test(gpu=gpu):
            found = run_estimate("mig", {"gpu": gpu})
            assert found["compute_slices"].value == 3 + 2 + 1
            assert found["memory_slices"].value == 4 + 2 + 1
            assert found.verdict.status == "fits"


def test_one_instance_is_told_of_in_the_singular() -> None:
    found = run_estimate("mig", {"instances": "1g"})
    assert found.verdict.text.startswith("1 instance uses 1 of 7")


def test_instances_that_nobody_published_are_not_denied() -> None:
    with pytest.raises(InvalidInputsError, match="7 instances, whose profiles are not"):
        run_estimate("mig", {"gpu": "b100"})


def test_every_estimate_of_memory_says_label_and_reading() -> None:
    for name in ("inference-memory", "training-memory", "training-time", "latency"):
        notes = " ".join(run_estimate(name, {"gpu": "H100"}).notes)
        assert "80\u00a0GB on the label; nvidia-smi shows 85.5\u00a0GB (81,559 MiB)" in notes
        notes = " ".join(run_estimate(name, {"gpu": "L40"}).notes)
        assert "48\u00a0GB on the label; no reading of its driver is published" in notes


@pytest.mark.parametrize(
    ("instances", "says"),
    [
        ("8x 1g", "The instances ask for 8 compute slices, and the GPU has 7."),
        (
            "1g.20gb, 2x 3g",
            "The instances ask for 10 memory slices, and the GPU has 8.",
        ),
        ("4x 1g.20gb, 1g", "The instances ask for 9 memory slices, and the GPU has 8."),
    ],
)
def test_instances_that_do_not_fit_are_told_the_slices_that_lack(instances: str, says: str) -> None:
    assert run_estimate("mig", {"instances": instances}).verdict.text == says


def test_the_instances_of_cards_of_80_gb_hold_what_drivers_list(
    subtests: pytest.Subtests,
) -> None:
    for name, instances, gib in [
        ("h100-sxm5-80", "7x 1g.10gb", 7 * 9.75),
        ("h100-sxm5-80", "3x 2g.20gb", 3 * 19.62),
        ("h100-sxm5-80", "2x 3g.40gb", 2 * 39.5),
        ("a100-sxm4-80", "3x 2g.20gb, 1g.10gb", 3 * 19.5 + 9.5),
        ("a100-pcie-80", "3x 2g.20gb, 1g.10gb", 3 * 19.5 + 9.5),
    ]:
        with subtests.test(name=name, instances=instances):
            found = run_estimate("mig", {"gpu": name, "instances": instances})
            assert found["memory"].value == pytest.approx(gib * 2**30)


def test_the_bar_of_partitions_counts_slices() -> None:
    """In bytes it was longer than the label, and its parts than their names."""
    (picture,) = run_estimate("mig", {"instances": "3g, 2g, 1g"}).pictures
    assert isinstance(picture, StackedBar)
    says = draw_stacked_bar(picture).alt_text
    assert says.endswith("3g.40gb 4, 2g.20gb 2, 1g.10gb 1; 7 of 8 slices, 1 left.")
    (over,) = run_estimate("mig", {"instances": "9x 1g"}).pictures
    assert isinstance(over, StackedBar)
    assert draw_stacked_bar(over).alt_text.endswith("; 9 of 8 slices, 1 over.")


def test_partitions_ask_for_one_gpu_that_has_them() -> None:
    fields = input_specs(MigInputs)
    assert "8x" not in fields["gpu"].help
    assert fields["gpu"].topic == fields["instances"].topic == "mig"


def test_a_mig_instance_and_inference_memory_link_to_each_other() -> None:
    partitions = run_estimate("mig", {"gpu": "h100-sxm5-80"})
    by_profile = {link.text.rpartition(" ")[2]: link for link in partitions.links}
    profiles = find_mig_gpu("h100-sxm5-80").profiles
    assert list(by_profile) == [profile.name for profile in profiles]
    for profile in profiles:
        link = by_profile[profile.name]
        assert link.estimate_name == "inference-memory"
        memory = run_estimate(
            link.estimate_name, {**link.typed_inputs, "model": "llama-3.2-1b", "engine": "general"}
        )
        (bar,) = memory.pictures
        share = bar.capacity / profile.program_visible_bytes
        assert share == pytest.approx(0.9, abs=0.05)
        said = f"{memory.verdict.text} {' '.join(memory.notes)}"
        assert ("on the label" in said) is profile.is_whole_gpu
        assert (profile.name in said) is not profile.is_whole_gpu
        (back,) = memory.links
        assert (back.estimate_name, dict(back.typed_inputs)) == ("mig", {"gpu": "h100-sxm5-80"})
    small = run_estimate("inference-memory", by_profile["1g.20gb"].typed_inputs)
    text = small.verdict.text.replace("\u00a0", " ")
    # Both profiles of two memory slices have as much.
    assert text.startswith("The MIG instance (1g.20gb or 2g.20gb) would need ")
    assert "may use 19 GB of 21.1 GB" in text
    assert (
        "The MIG instance (1g.20gb or 2g.20gb) has 21.1 GB of the 84.9 GB that programs get of the "
        "H100 SXM5 80GB, 24.8%."
    ) in [note.replace("\u00a0", " ") for note in small.notes]
    assert not run_estimate("inference-memory", {"gpu": "h100-sxm5-80"}).links
    # The profile of the whole GPU has what programs get of the undivided one, on both pages.
    assert "of which programs get 84.9\N{NO-BREAK SPACE}GB" in " ".join(partitions.notes)
    assert (84.9329782784e9, "B") in partitions.tables[0].rows[-1]
    assert dict(partitions.links[-1].typed_inputs) == {
        "gpu": "h100-sxm5-80",
        "tensor_parallel": "1",
    }
    spec = input_specs(InferenceMemoryInputs)["shown_memory"]
    assert "A MIG instance is described so" in spec.help
