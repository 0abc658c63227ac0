"""How the checkpoint of a `config.json` is quantized."""

import dataclasses
from collections.abc import Mapping

from app.estimator.models.quantized.methods import (
    FP8,
    MXFP4,
    READERS,
    Config,
    Override,
    Quantization,
    UnknownFormatError,
    name_of,
)
from app.estimator.models.quantized.module_names import ModulePatterns


def read_quantization(config: Config, text: Config) -> Quantization | None:
    """How the checkpoint of a `config.json` is quantized; None where it is not.

    `text` is the part that describes the language model.
    """
    inner = _declared(text)
    found = _declared(config) or inner
    try:
        if found is None:
            return _read_dtype(config, text)
        return _with_experts(_read(found), text)
    except UnknownFormatError as error:
        return Quantization(problem=str(error))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return Quantization(problem=name_of(found or {}) + ", with unusable values")


def _declared(config: Config) -> Config | None:
    """The table that a configuration has for it under any of its names."""
    for key in ("quantization_config", "compression_config", "quantization"):
        value = config.get(key)
        if isinstance(value, Mapping):
            if value:
                return value
        elif value:
            return {"quant_method": str(value)}
    return None


def _read_dtype(config: Config, text: Config) -> Quantization | None:
    """Weights that are stored in 8 bits without any scale."""
    for part in (text, config):
        words = str(part.get("dtype") or part.get("torch_dtype") or "")
        if "float8" in words:
            return Quantization(FP8)
        if any(name in words for name in ("int8", "int4", "float4", "float6")):
            return Quantization(problem=f"weights of type {words[:40]}")
    return None


def _with_experts(found: Quantization, text: Config) -> Quantization:
    """DeepSeek V4 names the format of its routed experts beside the table."""
    word = text.get("expert_dtype")
    if not word or found.problem:
        return found
    if word not in ("fp4", "fp8"):
        raise UnknownFormatError(f"experts of type {str(word)[:40]}")
    if word == "fp8":
        return found
    experts = Override(ModulePatterns(("experts",)), MXFP4)
    return dataclasses.replace(found, overrides=(*found.overrides, experts))


def _read(table: Config) -> Quantization:
    """Read a table by its method."""
    inner = table.get("quantization")
    if isinstance(inner, Mapping):  # hf_quant_config.json, wrapped by its producer
        table = {"quant_method": "modelopt", **inner}
    method = str(table.get("quant_method") or "").lower().replace("_", "-")
    if not method:
        method = _guess_method(table)
    reader = READERS.get(method)
    if reader is None:
        raise UnknownFormatError(name_of(table))
    return reader(table)


def _guess_method(table: Config) -> str:
    if "quant_algo" in table:
        return "modelopt"
    if "config_groups" in table:
        return "compressed-tensors"
    if any(str(key).lstrip("_").startswith("load_in_") for key in table):
        return "bitsandbytes"
    if "bits" in table and "group_size" in table:
        return "mlx"
    return ""
