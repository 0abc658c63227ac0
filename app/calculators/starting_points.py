"""Where people start: the list of calculators, and questions with ready inputs."""

import dataclasses
import functools
from collections.abc import Mapping
from urllib.parse import urlencode

from app.content.live.library import Library
from app.estimator import registry
from app.estimator.estimate import Figure
from app.estimator.inputs import declared
from app.estimator.registry import Entry
from app.estimator.units import format_value
from app.instruments.forms import Course, catalogued
from app.instruments.links import address


@dataclasses.dataclass(frozen=True, slots=True)
class Listed:
    """A calculator in the list, with its answer for the inputs it starts with."""

    number: int
    name: str
    title: str
    summary: str
    example: str
    label: str
    value: str


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """A question people come with: the estimate that answers it, and its inputs."""

    question: str
    example: str
    estimate: str
    typed: Mapping[str, str]

    @property
    def address(self) -> str:
        """The calculator, filled in."""
        return address(self.estimate, urlencode(self.typed))


STARTS: tuple[Start, ...] = (
    Start(
        "Does it fit on my card?",
        "A 7B model on one card of 24 GB, one conversation of 8,192 tokens",
        "inference-memory",
        {
            "model": "7B",
            "gpu": "rtx-4090",
            "tensor_parallel": "1",
            "context": "8192",
            "concurrent": "1",
        },
    ),
    Start(
        "How many GPUs serve my users?",
        "A 70B chat for 500 people at once, on H100s",
        "serving-capacity",
        {
            "model": "llama-3.1-70b",
            "concurrent": "500",
            "gpu": "h100-sxm5-80",
            "tensor_parallel": "4",
        },
    ),
    Start(
        "How fast will it answer?",
        "A 70B model in FP8 on four H100s, 16 conversations",
        "latency",
        {
            "model": "llama-3.1-70b",
            "weights": "fp8",
            "tensor_parallel": "4",
            "batch": "16",
        },
    ),
    Start(
        "What does training need?",
        "A 70B model with AdamW, everything sharded over 24 H100s",
        "training-memory",
        {"model": "llama-3.1-70b", "gpus": "24", "zero": "3"},
    ),
    Start(
        "How is the largest model laid out?",
        "Llama 3 405B on 16,384 H100s, 16 million tokens a step",
        "parallelism-plan",
        {
            "model": "llama-3.1-405b",
            "gpu": "h100-sxm5-80",
            "gpus": "16384",
            "sequence": "8192",
            "global_batch": "2048",
            "tokens": "15.6T",
        },
    ),
    Start(
        "And a mixture of experts?",
        "DeepSeek-V3 in FP8 on 2,048 H800s",
        "parallelism-plan",
        {
            "model": "deepseek-v3",
            "gpu": "h800-sxm-80",
            "gpus": "2048",
            "sequence": "4096",
            "global_batch": "15360",
            "number_format": "fp8",
            "tokens": "14.8T",
        },
    ),
    Start(
        "What is in this model?",
        "Mixtral 8x7B, or a config.json of your own",
        "model",
        {"model": "mixtral-8x7b"},
    ),
    Start(
        "What joins a thousand GPUs?",
        "127 DGX H100, rail-optimized",
        "fabric",
        {"nodes": "127"},
    ),
)


def in_groups() -> dict[str, list[Entry]]:
    """All estimates by group, groups and estimates in the order of the registry."""
    found: dict[str, list[Entry]] = {}
    for entry in registry.entries():
        found.setdefault(entry.group, []).append(entry)
    return found


def number_of(entry: Entry) -> tuple[int, int]:
    """The place of a calculator in the list, and how many there are."""
    listed = [e.name for group in in_groups().values() for e in group]
    return listed.index(entry.name) + 1, len(listed)


def groups() -> dict[str, list[Listed]]:
    """The list of calculators with an answer for each."""
    return {
        title: [_listed(entry, number_of(entry)[0]) for entry in entries]
        for title, entries in in_groups().items()
    }


def explained(entry: Entry, course: Course) -> dict[str, str]:
    """The pages that teach this calculator and its inputs: slug and title."""
    slugs = [entry.topic, *(i.topic for i in declared(entry.inputs).values())]
    return {s: course.topics[s] for s in slugs if s in course.topics}


def asked(entry: Entry, library: Library) -> dict[str, str]:
    """Where the course asks about what this calculator answers: address and words."""
    topic = library.topics.get(entry.topic)
    if topic is None or not topic.questions:
        return {}
    return {f"/quiz/{topic.slug}": f"{len(topic.questions)} questions, {topic.title}"}


@functools.cache
def _listed(entry: Entry, number: int) -> Listed:
    figures = entry.compute(entry.inputs()).figures
    measured = [f for f in figures if _is_number(f)]
    first = next((f for f in measured if f.primary), measured[0] if measured else None)
    return Listed(
        number=number,
        name=entry.name,
        title=entry.title,
        summary=entry.summary,
        example=_example(entry),
        label=first.label if first else "",
        value=_short(first) if first else "",
    )


def _is_number(figure: Figure) -> bool:
    return isinstance(figure.value, int | float) and not isinstance(figure.value, bool)


def _short(figure: Figure) -> str:
    """A figure as the list has room for: `70.6 B` parameters, not all their digits."""
    if figure.unit == "parameter" and isinstance(figure.value, int | float):
        return f"{figure.value / 1e9:,.1f}\u00a0B"
    return format_value(figure.value, figure.unit)


def _example(entry: Entry) -> str:
    """The catalog names among the inputs that a calculator starts with."""
    inputs = entry.inputs()
    words = []
    for name, field in declared(entry.inputs).items():
        if field.kind in {"model", "gpu", "system", "network"} and not field.advanced:
            value = getattr(inputs, name)
            names = dict(c for group in catalogued(field.kind) for c in group.choices)
            words.append(names.get(value, value))
    return ", ".join(w for w in words if w)
