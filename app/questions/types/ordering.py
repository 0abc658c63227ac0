"""Ordering questions: put steps in order, with distractors."""

import dataclasses
import functools
import itertools
import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from markdown_it.token import Token

from app.markup.html_renderer import render_tokens
from app.markup.markdown_tokens import (
    find_closing_index,
    get_first_line_number,
    get_last_line_number,
)
from app.markup.model import RichText
from app.markup.text import reduce_to_words
from app.questions.option_parsing import (
    Choice,
    ParsedOption,
    build_choices,
    make_step_or_row_key,
    render_optional_rich_text,
    report_if_max_parts_reached,
)
from app.questions.question_type import (
    AnsweredMark,
    AuthoredItem,
    CardFacesHtml,
    DraftFields,
    GradeResult,
    LabeledResponse,
    PartResult,
    QuestionType,
    RenderGap,
    ResultColumnTitles,
    SubmittedFields,
    UnreadableResponse,
    clamp_fraction,
    escape_typed_text,
    first_field_value_or_empty,
    render_list_items,
    render_option_with_feedback,
    render_titled_list,
)

_LAST_PLACE = 10**9
_CHECK_BOX = re.compile(r"\[[ xX]?\] ")
# The mean longest run of more steps is taken from this many shuffles.
_MAX_EXACTLY_AVERAGED_STEPS = 6


@dataclasses.dataclass(frozen=True, slots=True)
class OrderSpec:
    """Steps to be put in order; distractors are left out.

    `steps` are in the right order, also in a variant; `shown` has the keys of steps
    and distractors in the order displayed (empty before drawing).
    """

    steps: tuple[Choice, ...]
    distractors: tuple[Choice, ...] = ()
    shown: tuple[str, ...] = ()

    @property
    def steps_and_distractors(self) -> tuple[Choice, ...]:
        return (*self.steps, *self.distractors)

    @property
    def steps_and_distractors_as_shown(self) -> list[Choice]:
        items_by_key = {item.key: item for item in self.steps_and_distractors}
        return [items_by_key[key] for key in self.shown] or list(self.steps_and_distractors)


class PlacedStep(NamedTuple):
    """A step or distractor, and the place that was typed for it; empty for none."""

    step: Choice
    typed_place: str


class OrderingType(QuestionType[OrderSpec]):
    """A position for each step, set in a list or by buttons that move it."""

    name = "order"
    answer_classes = (OrderSpec, Choice)
    template = "questions/order.html"
    supports_partial_credit = True
    credit_rules = ("off", "each", "lcs")
    form_fields = ("place.",)
    answer_block_type = "ordered_list_open"
    is_in_scaffolded_topics = True

    def is_implied_by_block(self, block: Token, options: Sequence[ParsedOption]) -> bool:
        """Recognize the type by a numbered list; boxes may mark the distractors."""
        del options
        return block.type == self.answer_block_type and not block.level

    def parse_answer(self, authored: AuthoredItem) -> OrderSpec:
        """Parse the steps of an ordered list; unticked options are distractors."""
        choices: list[Choice] = []
        taken_keys: set[str] = set()
        steps = authored.parts.answer_block
        position = 1
        while position < len(steps) - 1:
            if report_if_max_parts_reached(
                choices, "steps", get_first_line_number(steps[position]), authored.parse_context
            ):
                break
            end = find_closing_index(steps, position)
            inside = steps[position + 1 : end]
            quotes = [i for i, t in enumerate(inside) if t.type == "blockquote_open"]
            text_length = quotes[0] if quotes else len(inside)
            text = render_tokens(inside[:text_length], authored.context)
            key = make_step_or_row_key(
                authored.comment.id, f"step {reduce_to_words(text.plain)}", taken_keys
            )
            feedback = render_optional_rich_text(inside[text_length + 1 : -1], authored.context)
            choices.append(Choice(key, text, True, feedback))
            position = end + 1
        wrong = build_choices(authored.comment.id, authored.parts.options, authored.context)
        return OrderSpec(tuple(choices), wrong)

    def report_answer_problems(self, answer: OrderSpec, authored: AuthoredItem) -> None:
        """Report problems of steps and distractors (E21, E24, E50, E51)."""
        parse_context, line = authored.parse_context, authored.answer_or_item_line
        _report_list_markup_problems(answer, authored)
        if len(answer.steps) < 3:
            count = len(answer.steps)
            count_text = f"{count} step{'s' * (count != 1)}"
            message = f"The question has {count_text}; three are needed."
            hint = "Write the steps as a numbered list: 1. first, 2. second, 3. third."
            if count:
                hint = "Write the missing ones into the numbered list."
            parse_context.report("E50", line, 1, message, hint, is_consequence=count > 0)
        seen: set[str] = set()
        for step in answer.steps_and_distractors:
            step_words = reduce_to_words(step.text.plain)
            if step_words in seen:
                message = f"The step “{step.text.plain[:50]}” stands twice."
                parse_context.report("E51", line, 1, message, "Change or delete one of them.")
            seen.add(step_words)

    def answer_key_fingerprint_texts(self, answer: OrderSpec) -> list[str]:
        """Return the steps in their right order."""
        return [f"> {step.text.plain or step.text.html}" for step in answer.steps]

    def shuffle_options(self, answer: OrderSpec, rng: random.Random) -> OrderSpec:
        """Shuffle the keys, so that the steps are not already in the right order."""
        keys = [item.key for item in answer.steps_and_distractors]
        right = [c.key for c in answer.steps]
        return dataclasses.replace(answer, shown=tuple(_shuffle_into_other_order(keys, right, rng)))

    def build_template_data(
        self, answer: OrderSpec, draft_fields: DraftFields
    ) -> tuple[PlacedStep, ...]:
        pieces = {item.key: item for item in answer.steps_and_distractors}
        keys = [k for k in answer.shown if k in pieces] or sorted(pieces)
        places = {
            key: (draft_fields.get(f"place.{key}") or ("",))[0] if draft_fields else str(number)
            for number, key in enumerate(keys, 1)
        }
        keys.sort(key=lambda key: _parse_place_or_last(places[key]))
        return tuple(PlacedStep(pieces[key], places[key]) for key in keys)

    def apply_button_press(self, fields: DraftFields, pressed_button: str) -> DraftFields:
        """Return the positions after one step moved up or down; omitted steps stay omitted.

        `pressed_button` is “KEY:up” or “KEY:down”.
        """
        numbered_fields = [
            (int(values[0]), name)
            for name, values in fields.items()
            if name.startswith("place.") and values and values[0].isascii()
            if values[0].isdigit() and len(values[0]) < 5
        ]
        names = [name for _, name in sorted(numbered_fields)]
        key, _, direction = pressed_button.partition(":")
        name = f"place.{key}"
        if name in names:
            index = names.index(name)
            neighbor = index - 1 if direction == "up" else index + 1
            if 0 <= neighbor < len(names):
                names[index], names[neighbor] = names[neighbor], names[index]
        places = {name: [str(number)] for number, name in enumerate(names, 1)}
        return {**{name: list(values) for name, values in fields.items()}, **places}

    def drop_untouched_fields_on_autosave(
        self, answer: OrderSpec, raw: DraftFields, answered_mark: AnsweredMark
    ) -> DraftFields:
        """Drop an order that is still as drawn, which is no answer.

        The form sends the position of every step, moved or not. The positions are saved if
        the learner marked them as answered, or if they differ from those drawn, unless the
        learner cleared the answer.
        """
        places_as_drawn = {
            f"place.{p.step.key}": p.typed_place for p in self.build_template_data(answer, {})
        }
        places = {n: v[0] for n, v in raw.items() if n.startswith("place.") and v}
        if answered_mark == "yes" or (not answered_mark and places != places_as_drawn):
            return raw
        return {name: values for name, values in raw.items() if name not in places}

    def grade(
        self, answer: OrderSpec, raw: SubmittedFields, credit_rule: str
    ) -> GradeResult | UnreadableResponse:
        """Grade an order; `place.KEY` in the response contains the position of each item.

        Positions count from 1; an empty one leaves the item out.
        """
        places = _parse_places(answer, raw)
        if isinstance(places, UnreadableResponse):
            return places
        given = list(places)
        right = [step.key for step in answer.steps]
        return GradeResult(
            score=compute_order_credit(right, given, credit_rule),
            score_basis=_describe_order_score_basis(right, given, credit_rule),
            points_text=_describe_order_points(right, given) if credit_rule == "lcs" else "",
            parsed_response={"order": given},
            part_results=_grade_steps(answer, places, credit_rule),
            given_answer=_describe_order_result(answer, given),
            right_answer="",
        )

    def describe_empty_places(self, answer: OrderSpec, raw: SubmittedFields) -> str:
        """Return which places a response left empty, and that later ones move up; or nothing."""
        places = _parse_places(answer, raw)
        if isinstance(places, UnreadableResponse):
            return ""
        last = max(places.values())
        empty = sorted({*range(1, max(last, len(answer.steps)) + 1)} - {*places.values()})
        if not empty:
            return ""
        noun = "place" if len(empty) == 1 else "places"
        text = f"You left {noun} {' and '.join(map(str, empty))} empty"
        return f"{text}, so what stands behind moves up." if empty[0] < last else f"{text}."

    def describe_missing_input(
        self, answer: OrderSpec, raw: SubmittedFields, stem: RichText
    ) -> str:
        del stem
        as_shown = _build_response(answer.shown)
        untouched = bool(as_shown) and all(list(raw.get(n, ())) == v for n, v in as_shown.items())
        return "This is the order in which they were shown. Move them first." if untouched else ""

    def build_some_valid_response(self, answer: OrderSpec) -> SubmittedFields:
        return _build_response([step.key for step in answer.steps])

    def result_column_titles(self, answer: OrderSpec) -> ResultColumnTitles:
        del answer
        return ResultColumnTitles("Step", "Its place")

    def render_card_faces_below_stem(
        self, answer: OrderSpec, render_gap: RenderGap
    ) -> CardFacesHtml:
        del render_gap
        note = "Put these in order."
        if answer.distractors:
            note = "Put these in order. At least one does not belong."
        shown = render_list_items(item.text.html for item in answer.steps_and_distractors_as_shown)
        steps = render_list_items(map(render_option_with_feedback, answer.steps))
        others = render_titled_list(
            "Doesn\u2019t belong", [*map(render_option_with_feedback, answer.distractors)]
        )
        return CardFacesHtml(f"<p>{note}</p><ul>{shown}</ul>", f"<ol>{steps}</ol>{others}")

    def sample_responses(self, answer: OrderSpec) -> Iterator[LabeledResponse]:
        keys = [step.key for step in answer.steps]
        extra = {f"place.{d.key}": [""] for d in answer.distractors}
        swapped = [keys[1], keys[0], *keys[2:]]
        last = len(keys) + 1
        yield LabeledResponse("In the right order", {**_build_response(keys), **extra})
        yield LabeledResponse("The first two swapped", {**_build_response(swapped), **extra})
        yield LabeledResponse("Backwards", {**_build_response(keys[::-1]), **extra})
        for number, distractor in enumerate(answer.distractors):
            with_distractor = {**extra, f"place.{distractor.key}": [str(last)]}
            description = "With a step that does not belong"
            description += f" ({number + 1})" if number else ""
            yield LabeledResponse(description, {**_build_response(keys), **with_distractor})

    def compute_guess_score(self, answer: OrderSpec, credit_rule: str) -> float:
        """Return the mean score of a shuffled order by the question's own rule."""
        if answer.distractors or credit_rule == "":
            return 1 / math.factorial(len(answer.steps) + len(answer.distractors))
        return _mean_credit_of_shuffled_order(len(answer.steps), credit_rule)


def compute_order_credit(
    right_order: Sequence[str], given_order: Sequence[str], credit_rule: str
) -> float:
    """Return the score 0..1 of an order.

    - `lcs`: longest common subsequence with the right order, minus one for each
      distractor. A single step is always in order, so it earns nothing:
      (length − 1 − distractors) ÷ (steps − 1), never below 0.
    - `each`: the share of steps in their right position.
    - otherwise all or nothing.
    """
    if credit_rule == "lcs" and len(right_order) > 1:
        distractor_count = len(set(given_order) - set(right_order))
        return clamp_fraction(
            len(_longest_common_subsequence(right_order, given_order)) - 1 - distractor_count,
            len(right_order) - 1,
        )
    if credit_rule == "each":
        return clamp_fraction(
            _count_steps_in_right_place(right_order, given_order),
            max(len(right_order), len(given_order)),
        )
    return float(list(right_order) == list(given_order))


def _describe_order_score_basis(
    right_order: Sequence[str], given_order: Sequence[str], credit_rule: str
) -> str:
    if credit_rule == "lcs":
        following = max(len(_longest_common_subsequence(right_order, given_order)) - 1, 0)
        foreign = len(set(given_order) - set(right_order))
        basis = (
            f"{following} {'step follows' if following == 1 else 'steps follow'} in the right order"
        )
        if foreign == 1:
            return f"{basis}; 1 point off for an item that doesn\u2019t belong"
        return basis + (f"; {foreign} points off for items that don\u2019t belong" * bool(foreign))
    if credit_rule in {"", "off"}:
        return "only the whole order counts"
    return f"{_count_steps_in_right_place(right_order, given_order)} of {max(len(right_order), len(given_order))} in their place"


def _describe_order_points(right_order: Sequence[str], given_order: Sequence[str]) -> str:
    """Return the points as `lcs` counts them: one for each step after the first."""
    most = len(right_order) - 1
    return f"{round(most * compute_order_credit(right_order, given_order, 'lcs'))} of {most} points"


def _report_list_markup_problems(answer: OrderSpec, authored: AuthoredItem) -> None:
    """Report ticked distractors, and steps not in one numbered list without boxes."""
    parse_context, body = authored.parse_context, authored.source.body
    for option in authored.parts.options:
        if option.ticked:
            message = f"“{option.plain_text[:40]}” is ticked, and is no step."
            hint = "Put it into the numbered list, or take the tick away."
            option.report_problem("E21", message, hint, parse_context)
    items = [t for t in authored.parts.answer_block if t.type == "list_item_open"]
    for item, step in zip([t for t in items if t.level == 1], answer.steps, strict=False):
        if not step.text.html:
            message, hint = "This step is empty.", "Write it, or delete its number."
            parse_context.report("E50", get_first_line_number(item), 1, message, hint)
        elif _CHECK_BOX.match(step.text.plain):
            message = f"“{step.text.plain[:40]}” is shown with its box."
            hint = "Take the box away: the steps of an order are all right."
            parse_context.report("E24", get_first_line_number(item), 1, message, hint)
    lists = [t for t in body if t.type == "ordered_list_open" and not t.level]
    if len(lists) > 1:
        message = "A second list stands behind the steps, and is no part of them."
        hint = "Write all steps into one list; an explanation goes below [!NOTE]."
        parse_context.report("E50", get_first_line_number(lists[1]), 1, message, hint)
    _report_bullets_beside_steps(authored)


def _report_bullets_beside_steps(authored: AuthoredItem) -> None:
    """Report bullets directly before or after the steps, which would not be steps (E50)."""
    body = [t for t in authored.source.body if not t.level and t.nesting >= 0]
    boxed = {option.line for option in authored.parts.options}
    for index, token in enumerate(body):
        neighbor_types = [t.type for t in body[max(index - 1, 0) : index + 2]]
        is_stray = token.type == "bullet_list_open" and "ordered_list_open" in neighbor_types
        if is_stray and boxed.isdisjoint(
            range(get_first_line_number(token), get_last_line_number(token) + 1)
        ):
            message = "These bullets are neither steps nor options."
            hint = "Number what is a step, and write - [ ] before what is none."
            authored.parse_context.report("E50", get_first_line_number(token), 1, message, hint)


def _parse_place_or_last(place: str) -> int:
    return int(place) if place.isascii() and place.isdigit() else _LAST_PLACE


def _build_response(keys: Sequence[str]) -> dict[str, list[str]]:
    return {f"place.{key}": [str(place)] for place, key in enumerate(keys, 1)}


def _shuffle_into_other_order(
    keys: list[str], right_order: list[str], rng: random.Random
) -> list[str]:
    """Return a shuffle whose steps are not already in the right order."""
    mixed = list(keys)
    rng.shuffle(mixed)
    if len(right_order) > 1 and [k for k in mixed if k in right_order] == right_order:
        places = [i for i, k in enumerate(mixed) if k in right_order]
        first, last = places[0], places[-1]
        mixed[first], mixed[last] = mixed[last], mixed[first]
    return mixed


def _parse_places(answer: OrderSpec, raw: SubmittedFields) -> dict[str, int] | UnreadableResponse:
    """Return the places of the items that have one by their keys, first place first."""
    item_by_place: dict[int, Choice] = {}
    for item in answer.steps_and_distractors:
        typed = first_field_value_or_empty(raw, f"place.{item.key}")
        if not typed:
            continue
        if not (typed.isascii() and typed.isdigit()) or len(typed) > 3:
            return UnreadableResponse(f"“{typed}” is not a place; write a number from 1.")
        other = item_by_place.setdefault(int(typed), item)
        if other is not item:
            both = f"“{other.text.plain}” and “{item.text.plain}”"
            return UnreadableResponse(f"{both} both stand at place {typed}.", "Move one of them.")
    if not item_by_place:
        return UnreadableResponse("No step has a place.", "Give each step its place.")
    return {item.key: place for place, item in sorted(item_by_place.items())}


def _grade_steps(
    answer: OrderSpec, place_by_key: Mapping[str, int], credit_rule: str
) -> tuple[PartResult, ...]:
    """Return the steps in the right order, then the distractors.

    Places that were left empty don't count. A step is right by what the credit rule counts: its
    place among the others, or the place itself.
    """
    ranks = {key: rank for rank, key in enumerate(place_by_key, 1)}
    right_places = {step.key: place for place, step in enumerate(answer.steps, 1)}
    right_keys = {item.key for item in answer.steps_and_distractors}
    right_keys = {key for key in right_keys if ranks.get(key) == right_places.get(key)}
    if credit_rule == "lcs":
        run = _longest_common_subsequence(list(right_places), list(place_by_key))
        left_out = {item.key for item in answer.distractors if item.key not in place_by_key}
        right_keys = left_out | (set(run) if len(run) > 1 else set())
    return tuple(
        _grade_step(
            item,
            right_places.get(item.key),
            ranks.get(item.key),
            place_by_key.get(item.key),
            is_right=item.key in right_keys,
        )
        for item in answer.steps_and_distractors
    )


def _grade_step(
    step: Choice,
    right_place: int | None,
    given_rank: int | None,
    typed_place: int | None,
    *,
    is_right: bool,
) -> PartResult:
    given = str(given_rank or "")
    if given_rank != typed_place:
        given = f"{typed_place}, counts as {given_rank}"
    return PartResult(
        key=step.key,
        label=str(right_place or ""),
        text=step.text,
        chosen=given_rank is not None,
        should_be_chosen=right_place is not None,
        is_right=is_right,
        given_answer=escape_typed_text(given),
        right_answer=escape_typed_text(str(right_place or "")),
        feedback=step.feedback,
    )


def _describe_order_result(answer: OrderSpec, given_order: Sequence[str]) -> str:
    """Return how many steps are in the right position, and which distractors were placed."""
    right = [step.key for step in answer.steps]
    count_text = (
        f"{_count_steps_in_right_place(right, given_order)} of {len(right)} steps in their place"
    )
    distractors = [d.text.plain for d in answer.distractors if d.key in given_order]
    if not distractors:
        return count_text
    distractor_names = " and ".join(f"“{text}”" for text in distractors)
    return f"{count_text}, but {distractor_names} {'is' if len(distractors) == 1 else 'are'} no step here"


def _count_steps_in_right_place(right_order: Sequence[str], given_order: Sequence[str]) -> int:
    return sum(a == b for a, b in zip(right_order, given_order, strict=False))


def _longest_common_subsequence(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    runs: list[tuple[str, ...]] = [()] * (len(other) + 1)
    for a in one:
        diagonal: tuple[str, ...] = ()
        for index, b in enumerate(other, 1):
            above = runs[index]
            runs[index] = (*diagonal, a) if a == b else max(above, runs[index - 1], key=len)
            diagonal = above
    return runs[-1]


@functools.cache
def _mean_credit_of_shuffled_order(step_count: int, credit_rule: str) -> float:
    """Return the mean score of a shuffled order: by the longest run, or by positions."""
    if step_count < 2:
        return 1.0
    if credit_rule == "each":
        return 1 / step_count
    if credit_rule != "lcs":
        return 1 / math.factorial(step_count)
    count = min(step_count, _MAX_EXACTLY_AVERAGED_STEPS)
    right = [str(number) for number in range(count)]
    orders = itertools.permutations(right)
    runs = [len(_longest_common_subsequence(right, given)) for given in orders]
    return (sum(runs) / len(runs) - 1) / (count - 1)
