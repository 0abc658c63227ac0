"""Questions of every type, written by hand, and variants of them."""

import dataclasses

from app.markup.model import NO_TEXT, RichText, SourceLocation
from app.questions.model import Question, Variant
from app.questions.option_parsing import Choice
from app.questions.types import Answer
from app.questions.types.choice import ChoiceSpec
from app.questions.types.cloze import ClozeBlank, ClozeSpec
from app.questions.types.design import DesignSpec
from app.questions.types.matching import MatchRow, MatchSpec
from app.questions.types.number_parsing import AnswerRange, NumericOption, NumericSpec
from app.questions.types.ordering import OrderSpec
from app.questions.types.short_answer import ShortAnswerOption, ShortAnswerSpec


def text(words: str) -> RichText:
    return RichText(words, words)


def question(answer: Answer, type_: str, *, partial: str = "", id_: str = "q") -> Question:
    return Question(
        id=id_,
        topic="kv-cache",
        type=type_,
        stem=text("What is asked?"),
        answer=answer,
        objectives=("2.1",),
        place=SourceLocation("topics/kv-cache/quiz.md", 7),
        revision="r1",
        sources=("paged",),
        hints=(text("First hint."), text("Second hint.")),
        explanation=text("The explanation."),
        mistake=text("The common mistake."),
        partial=partial,
    )


def drawn(asked: Question, seed: int = 1) -> Variant:
    """The question as asked, in authored order."""
    return Variant(
        question=asked,
        seed=seed,
        stem=asked.stem,
        answer=asked.answer,
        hints=asked.hints,
        explanation=asked.explanation,
        mistake=asked.mistake,
        parameter_values={},
    )


def choices(kind: str, **options: bool) -> ChoiceSpec:
    return ChoiceSpec(
        kind=kind,
        options=tuple(
            Choice(key, text(f"Option {key}"), right, text(f"Why {key}"))
            for key, right in options.items()
        ),
    )


SINGLE = question(choices("single", bcdf=False, ghjk=True, lmnp=False), "single")
MULTIPLE = question(choices("multiple", bcdf=True, ghjk=True, lmnp=False, qrst=False), "multiple")
TRUE_FALSE = question(choices("true-false", bcdf=False, ghjk=True), "true-false")


def with_rule(asked: Question, partial: str) -> Question:
    return dataclasses.replace(asked, partial=partial)


def number(
    center: float,
    unit: str = "",
    *,
    within: float = 0.0,
    factor: float = 1.0,
    significant: int = 0,
) -> AnswerRange:
    """A range around `center` (in `unit`, of `factor` base units), `within` a share."""
    base = center * factor
    return AnswerRange(base, base * (1 - within), base * (1 + within), unit, significant)


def numeric(right: AnswerRange, *wrong: AnswerRange) -> Question:
    options = [NumericOption("bcdf", "", right, right=True, feedback=NO_TEXT)]
    options += [
        NumericOption(f"wr{i}", "", r, right=False, feedback=text("You forgot V."))
        for i, r in enumerate(wrong)
    ]
    return question(NumericSpec(tuple(options)), "numeric")


GIGABYTES = numeric(
    number(1120, "GB", within=0.02, factor=1e9),
    number(560, "GB", within=0.02, factor=1e9),
)
GIBIBYTES = numeric(number(80, "GiB", within=0.005, factor=2**30))
COUNT = numeric(number(131072))

SHORT = question(
    ShortAnswerSpec(
        (
            ShortAnswerOption("bcdf", "all-reduce", right=True),
            ShortAnswerOption(
                "ghjk", "all-gather", right=False, feedback=text("It adds nothing up.")
            ),
        )
    ),
    "short",
)

ORDER = question(
    OrderSpec(
        steps=tuple(
            Choice(key, text(words), right=True)
            for key, words in (
                ("zzzz", "Rack"),
                ("yyyy", "Firmware"),
                ("xxxx", "Fabric"),
                ("wwww", "Burn-in"),
            )
        ),
        distractors=(Choice("vvvv", text("Delete"), right=False, feedback=text("Never.")),),
        shown=("xxxx", "zzzz", "vvvv", "wwww", "yyyy"),
    ),
    "order",
    partial="lcs",
)

MATCH = question(
    MatchSpec(
        left_title="Link",
        right_title="Scope",
        pairs=(
            MatchRow("lbcd", text("NVLink"), text("GPU to GPU"), text("In a node"), "rfgh"),
            MatchRow("lfgh", text("InfiniBand"), text("Node to node"), NO_TEXT, "rbcd"),
            MatchRow("", NO_TEXT, text("Rack to WAN"), NO_TEXT, "rjkl"),
        ),
        shown_left=("lfgh", "lbcd"),
        shown_right=("rjkl", "rfgh", "rbcd"),
    ),
    "match",
)

CLOZE = question(
    ClozeSpec(
        pieces=(
            text("RDMA over Ethernet is "),
            text("; it wants a "),
            text(" fabric."),
        ),
        blanks=(
            ClozeBlank("bcdf", ("RoCE", "RoCEv2")),
            ClozeBlank("ghjk", ("lossless",), "no drops"),
        ),
    ),
    "cloze",
)

DESIGN = question(
    DesignSpec(
        estimate="inference-memory",
        given={"model": "70B", "weights": "fp16", "context": "8192", "engine": "general"},
        choose=("gpu", "tensor_parallel"),
        accept=("fits", "free >= 10 GB", "free <= 3 * best(free)"),
    ),
    "design",
)

EVERY_TYPE = {
    "design": DESIGN,
    "single": SINGLE,
    "multiple": MULTIPLE,
    "true-false": TRUE_FALSE,
    "numeric": GIGABYTES,
    "short": SHORT,
    "order": ORDER,
    "match": MATCH,
    "cloze": CLOZE,
}
