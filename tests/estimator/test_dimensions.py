"""The very formulas of the estimator, called with units: the answer has the right one.

Units are defined here and not taken from Pint's own list, where bits are plain
numbers.
"""

import pytest
from pint import DimensionalityError, UnitRegistry

from app.estimator.memory import activations, engine_memory, kv_cache
from app.estimator.memory import model_states as states
from app.estimator.memory.model_states import BytesPerParameter
from app.estimator.models import weight_formats as adapters
from app.estimator.models import weight_formats as formats

UNITS = UnitRegistry(None)
for line in (
    "byte = [information]",
    "bit = byte / 8",
    "token = [token]",
    "parameter = [parameter]",
    "sequence = [sequence]",
):
    UNITS.define(line)
BYTE, TOKEN, PARAMETER = UNITS.byte, UNITS.token, UNITS.parameter


def is_in(quantity: object, unit: object) -> bool:
    return UNITS.Quantity(quantity).check((1 * unit).dimensionality)


def test_the_cache_of_a_token_is_in_bytes_per_token() -> None:
    found = kv_cache.textbook_kv_cache_bytes_per_token(80, 8, 128, 2 * BYTE / TOKEN)
    assert found == 327_680 * BYTE / TOKEN


def test_weights_are_in_bytes() -> None:
    found = formats.element_bytes(70e9 * PARAMETER, 16 * BYTE / PARAMETER)
    assert is_in(found, BYTE)
    per_weight = formats.bits_per_weight_with_group_scales(
        4 * UNITS.bit / PARAMETER,
        128 * PARAMETER,
        16 * UNITS.bit,
        4 * UNITS.bit,
    )
    assert is_in(per_weight, UNITS.bit / PARAMETER)


def test_states_are_in_bytes() -> None:
    each = BYTE / PARAMETER
    bytes_each = BytesPerParameter(2 * each, 2 * each, 4 * each, 8 * each)
    found = states.state_bytes_under_zero_stage(7.5e9 * PARAMETER, bytes_each, 64, 3)
    assert all(is_in(part, BYTE) for part in found)


def test_logits_are_in_bytes() -> None:
    found = activations.saved_logits_bytes(512 * TOKEN, 128_256, 8, 4 * BYTE / TOKEN)
    assert is_in(found, BYTE)


def test_activations_of_a_layer_grow_with_sequence_batch_and_width() -> None:
    width = UNITS.parameter
    found = activations.gpt_layer_bytes(
        2048 * TOKEN,
        1 * UNITS.sequence,
        12_288 * width,
        96 * width / TOKEN,
        8,
        technique="tp",
    )
    assert is_in(found, TOKEN * UNITS.sequence * width)


def test_adapters_and_prompts_scale_with_their_widths() -> None:
    found = adapters.parameters_of_low_rank_adapter(4096 * PARAMETER, 4096 * PARAMETER, 8)
    assert is_in(found, PARAMETER)
    prompt = engine_memory.unfused_layer_prefill_bytes(
        100 * TOKEN, 896 * BYTE / TOKEN, 4864 * BYTE / TOKEN
    )
    assert is_in(prompt, BYTE)


def test_a_wrong_formula_would_be_caught() -> None:
    with pytest.raises(DimensionalityError):
        formats.bits_per_weight_with_group_scales(4 * UNITS.bit, 128, 16 * BYTE / TOKEN, 0 * BYTE)
