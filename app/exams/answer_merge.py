"""Merge an exam form into the saved answer: only what was changed in the form applies."""

import dataclasses
import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

Raw = Mapping[str, Sequence[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerState:
    """A question as a form holds it: the response, the flag, the options struck out."""

    raw_response: Raw = dataclasses.field(default_factory=dict)
    flagged: bool = False
    struck_options: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class MergedAnswer:
    """What is saved of a question after a form was sent.

    `replaced_other_answer`: it replaced another answer, given on another page.
    `kept_newer_answer`: an answer given on another page was newer, and stays. `form_is_stale`:
    the form still shows something that another page changed. `saved_at`: when the question was
    saved before.
    """

    state: AnswerState
    answer_changed: bool
    replaced_other_answer: bool
    kept_newer_answer: bool
    form_is_stale: bool
    saved_at: dt.datetime | None = None

    @property
    def message_key(self) -> Literal["", "replaced", "refused", "stale"]:
        """The message code for the sender, empty for none."""
        if self.kept_newer_answer:
            return "refused"
        if self.replaced_other_answer:
            return "replaced"
        return "stale" if self.form_is_stale else ""


def merge_answers(
    saved: AnswerState,
    displayed: AnswerState,
    submitted: AnswerState,
    *,
    form_is_newer: bool,
    merge_each_field: bool,
) -> MergedAnswer:
    """Apply to `saved` what differs between a form as `displayed` and as `submitted`.

    If the answer was also changed in between, the form's answer counts only if `form_is_newer`.
    With `merge_each_field`, each field of a response is merged on its own.
    """
    names = {*saved.raw_response, *displayed.raw_response, *submitted.raw_response}
    raw: dict[str, Sequence[str]] = {}
    replaced = refused = False
    for group in [{name} for name in sorted(names)] if merge_each_field else [names]:
        saved_fields, displayed_fields, submitted_fields = (
            _normalize_entered_fields(s.raw_response, group) for s in (saved, displayed, submitted)
        )
        is_changed_in_form = not _are_same_responses(submitted_fields, displayed_fields)
        conflict = (
            is_changed_in_form
            and not _are_same_responses(saved_fields, displayed_fields)
            and not _are_same_responses(saved_fields, submitted_fields)
        )
        replaced |= conflict and form_is_newer
        refused |= conflict and not form_is_newer
        source = submitted if is_changed_in_form and (form_is_newer or not conflict) else saved
        raw |= {name: source.raw_response[name] for name in group if name in source.raw_response}
    state = AnswerState(
        raw,
        submitted.flagged if submitted.flagged != displayed.flagged else saved.flagged,
        _merge_struck_options(
            saved.struck_options, displayed.struck_options, submitted.struck_options
        ),
    )
    changed = not _are_same_responses(
        _normalize_entered_fields(raw, raw),
        _normalize_entered_fields(saved.raw_response, saved.raw_response),
    )
    return MergedAnswer(
        state, changed, replaced, refused, form_is_stale=not _are_same_states(state, submitted)
    )


def is_response_entered(raw: Raw) -> bool:
    """Return whether a response holds anything; a unit without a value does not count."""
    return bool(_normalize_entered_fields(raw, raw))


def _normalize_entered_fields(raw: Raw, names: Collection[str]) -> dict[str, list[str]]:
    """Return the fields of `names` that hold something, normalized for comparison.

    Values are trimmed and sorted; a unit alone counts as nothing.
    """
    typed = {name: sorted(v.strip() for v in raw.get(name, ())) for name in names}
    entered = {name: [v for v in values if v] for name, values in typed.items()}
    filled = {name: values for name, values in entered.items() if values}
    return {} if filled.keys() <= {"unit"} else filled


def _are_same_responses(one: dict[str, list[str]], other: dict[str, list[str]]) -> bool:
    """Return whether two responses are equal, ignoring the unit that a form preselects."""
    if "unit" in one and "unit" in other:
        return one == other
    return {**one, "unit": []} == {**other, "unit": []}


def _merge_struck_options(
    saved: Sequence[str], shown: Sequence[str], sent: Sequence[str]
) -> tuple[str, ...]:
    keys = dict.fromkeys([*saved, *sent])
    return tuple(key for key in keys if key in (sent if (key in sent) != (key in shown) else saved))


def _are_same_states(one: AnswerState, other: AnswerState) -> bool:
    same_responses = _are_same_responses(
        _normalize_entered_fields(one.raw_response, one.raw_response),
        _normalize_entered_fields(other.raw_response, other.raw_response),
    )
    same_marks = one.flagged == other.flagged and {*one.struck_options} == {*other.struck_options}
    return same_responses and same_marks
