"""Convert rules of partial credit: weighted choices, and Moodle's ordering questions."""

import dataclasses
import re
from collections.abc import Iterable, Sequence

from app.import_export.formats.extra_fields import has_partial_credit_tag
from app.import_export.items import (
    Item,
    ItemOption,
    Kind,
    are_options_true_and_false,
    build_scored_option,
)
from app.import_export.text_conversion import PicturesAndLosses

MOODLE_ORDERING_RULES = {
    "off": "ALL_OR_NOTHING",
    "each": "ABSOLUTE_POSITION",
    "lcs": "LONGEST_ORDERED_SUBSET",
}
"""Moodle's names of our credit rules for ordering questions."""
LONGEST_SEQUENCE = "LONGEST_CONTIGUOUS_SUBSET"
"""The closest rule to `lcs` that Moodle reads from GIFT; it misreads the name of `lcs` itself."""
_CREDIT_RULE_BY_MOODLE_NAME = {
    **{there: rule for rule, there in MOODLE_ORDERING_RULES.items() if rule != "off"},
    MOODLE_ORDERING_RULES["off"]: "",
    LONGEST_SEQUENCE: "lcs",
    "ABS": "each",
    "ABSOLUTE": "each",
}
_RANDOM_SUBSET_TYPES = frozenset({"RANDOM", "CONTIGUOUS", "CONTIG"})


@dataclasses.dataclass(frozen=True, slots=True)
class WeightedChoice:
    """A choice worth `percent_of_mark` percent of the mark."""

    text: str
    percent_of_mark: float
    feedback: str = ""


def build_choice_item_from_weights(
    item: Item,
    choices: Sequence[WeightedChoice],
    losses: PicturesAndLosses,
    *,
    allows_several_answers: bool,
    is_credit_rule_in_file: bool = True,
) -> Item:
    """Return a single or multiple choice item; what our rules cannot express is a loss.

    `is_credit_rule_in_file`: the file names the rule of credit, instead of only giving weights. In a single
    choice only the full mark is right, and less is partial credit. In a multiple choice everything
    with a positive weight is right, and the penalties decide the rule of credit. A multiple choice
    with only one right option becomes a single choice.
    """
    if allows_several_answers and sum(choice.percent_of_mark > 0 for choice in choices) == 1:
        losses.add_loss("several boxes could be ticked there; here it is a single choice")
        return _convert_one_answer_choices_to_item(
            dataclasses.replace(item, partial=""), choices, losses
        )
    if not allows_several_answers:
        if any(choice.percent_of_mark < 0 for choice in choices):
            losses.add_loss("a wrong choice cost a part of the mark; here it costs nothing")
        return _convert_one_answer_choices_to_item(item, choices, losses)
    options = tuple(ItemOption(w.text, w.percent_of_mark > 0, w.feedback) for w in choices)
    partial = item.partial or _choose_credit_rule_and_note_loss(choices, losses)
    if partial == "off" and not item.partial and not is_credit_rule_in_file:
        losses.add_loss("a part of the right choices was worth a part of the mark; here none")
    return dataclasses.replace(item, kind="multiple", options=options, partial=partial)


def _convert_one_answer_choices_to_item(
    item: Item, choices: Sequence[WeightedChoice], losses: PicturesAndLosses
) -> Item:
    best = max((w.percent_of_mark for w in choices), default=0)
    converted = tuple(
        build_scored_option(w.text, w.percent_of_mark, best, w.feedback) for w in choices
    )
    kind: Kind = "true-false" if are_options_true_and_false(converted) else "single"
    if sum(o.right for o in converted) > 1:
        kind = "multiple"
        losses.add_loss("either answer counted in full; here both must be ticked")
    if kind != "single":
        for option in converted:
            if option.credit:
                message = f"“{option.text}” is worth {option.percent_weight:g}%; here nothing"
                losses.add_loss(message)
        converted = tuple(dataclasses.replace(o, credit=0.0) for o in converted)
    return dataclasses.replace(item, kind=kind, options=converted)


def _choose_credit_rule_and_note_loss(
    choices: Sequence[WeightedChoice], losses: PicturesAndLosses
) -> str:
    """Return `net` if a wrong tick costs what a right one earns, otherwise the closest rule."""
    gains = {round(w.percent_of_mark, 2) for w in choices if w.percent_of_mark > 0}
    costs = {round(-w.percent_of_mark, 2) for w in choices if w.percent_of_mark <= 0}
    if len(gains) == 1 and all(abs(cost - gain) < 0.01 for cost in costs for gain in gains):
        return "net"
    if costs and min(costs) >= 99.9:
        return "off"
    losses.add_loss("its weights are replaced: a wrong tick costs what a right one brings")
    return "net"


def list_choice_weight_percents(item: Item) -> list[float]:
    """Return the percentage each choice is worth, for formats with weights.

    All-or-nothing is approximated: a wrong tick loses everything.
    """
    right = sum(o.right for o in item.options) or 1
    share = round(100 / right, 5)
    if item.kind != "multiple":
        return [o.percent_weight for o in item.options]
    cost = -100.0 if item.partial in {"", "off"} else -share
    return [share if o.right else cost for o in item.options]


def apply_moodle_ordering_settings(
    item: Item, moodle_settings: Sequence[str], tags: Iterable[str], losses: PicturesAndLosses
) -> Item:
    """Return an ordering question with the closest of our rules of credit.

    Moodle's `moodle_settings` say how many steps are used, which ones, and how they are graded. What has
    no counterpart is recorded as a loss, unless one of our tags names the rule.
    """
    count = next((int(w) for w in moodle_settings if re.fullmatch(r"[0-9]{1,3}", w)), 0)
    if not _RANDOM_SUBSET_TYPES.isdisjoint(moodle_settings) and 0 < count < len(item.steps):
        losses.add_loss(f"all {len(item.steps)} steps are asked, not {count} of them")
    rule_name = next((w for w in moodle_settings if w in _CREDIT_RULE_BY_MOODLE_NAME), "")
    if not has_partial_credit_tag(tags) and rule_name not in {
        "ABS",
        "ABSOLUTE",
        *MOODLE_ORDERING_RULES.values(),
    }:
        losses.add_loss("its rule of credit is replaced by the nearest one")
    return dataclasses.replace(
        item, kind="order", partial=_CREDIT_RULE_BY_MOODLE_NAME.get(rule_name, "each")
    )


def does_credit_rule_differ_from_moodle(item: Item) -> bool:
    """Return whether Moodle uses a different rule of partial credit than the item."""
    if item.kind == "multiple":
        return item.partial in {"", "off", "each"}
    return item.kind in {"match", "cloze"} and item.partial not in {"", "each"}
