"""Labs: a terminal, a goal to reach in it, and a diagnosis to choose."""

import dataclasses
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape

from app.questions.lab_session import (
    CommandMatcher,
    Lab,
    LabCommand,
    LabEntry,
    LabSession,
    find_shortest_path_by_state,
    find_shortest_solution,
    replay_lab_lines,
)
from app.questions.option_parsing import Choice, build_choices
from app.questions.question_type import (
    AuthoredItem,
    CardFacesHtml,
    DraftFields,
    GradeResult,
    LabeledResponse,
    QuestionType,
    RenderGap,
    SubmittedFields,
    SubmittedResponse,
    UnreadableResponse,
    escape_typed_text,
    first_field_value_or_empty,
    render_feedback,
    render_list_items,
)
from app.questions.types.choice import (
    join_option_letters,
    list_option_results,
    render_choice_card_faces,
)
from app.questions.types.lab_rules import parse_lab, report_lab_problems

MOST_LINES = 40
LONGEST_LINE = 200
_HARMFUL_COMMAND_PENALTY = 0.25


@dataclasses.dataclass(frozen=True, slots=True)
class LabSpec:
    diagnoses: tuple[Choice, ...]
    lab: Lab


@dataclasses.dataclass(frozen=True, slots=True)
class OpenLab:
    """A lab on the page: the session so far, the command being typed, and what Tab completes."""

    session: LabSession
    executed_lines: tuple[str, ...]
    unfinished_command: str
    tab_completions: tuple[str, ...]
    max_line_length: int = LONGEST_LINE
    max_lines: int = MOST_LINES


@dataclasses.dataclass(frozen=True, slots=True)
class LabReview:
    """A session after the answer: the shortest harmless path, harmful entries once, needless lines."""

    session: LabSession
    shortest_commands: tuple[LabCommand, ...]
    harmful_entries: tuple[LabEntry, ...]
    unneeded_lines: tuple[str, ...]


class LabType(QuestionType[LabSpec]):
    """Commands typed into a terminal, and a diagnosis.

    Mock exams leave it out, because a lab takes longer than a question may.
    """

    name = "console"
    answer_classes = (LabSpec, Lab, LabCommand)
    template = "questions/console.html"
    answer_block_type = "fence console"
    may_have_several_answer_blocks = True
    comment_keys = ("host", "start", "goal")
    form_fields = ("answer", "ran", "command")
    unanswering_form_fields = ("ran", "command")
    options_attribute = "diagnoses"
    supports_partial_credit = True
    is_allowed_in_exams = False

    def parse_answer(self, authored: AuthoredItem) -> LabSpec:
        choices = build_choices(authored.comment.id, authored.parts.options, authored.context)
        return LabSpec(choices, parse_lab(authored))

    def report_answer_problems(self, answer: LabSpec, authored: AuthoredItem) -> None:
        report_lab_problems(answer.lab, authored)

    def answer_key_fingerprint_texts(self, answer: LabSpec) -> list[str]:
        needed = (c.first_spelling for c in answer.lab.commands if c.is_needed)
        return [*self.right_answer_texts(answer), *answer.lab.goal, *needed]

    def shuffle_options(self, answer: LabSpec, rng: random.Random) -> LabSpec:
        diagnoses = list(answer.diagnoses)
        rng.shuffle(diagnoses)
        return dataclasses.replace(answer, diagnoses=tuple(diagnoses))

    def build_template_data(self, answer: LabSpec, draft_fields: DraftFields) -> OpenLab:
        lines, matcher = _read_executed_lines(draft_fields), CommandMatcher(answer.lab)
        completions = (
            " ".join([p, *options]) for p, options in matcher.option_names_by_program.items()
        )
        draft = first_field_value_or_empty(draft_fields, "command")
        return OpenLab(matcher.replay_typed_lines(lines), lines, draft, tuple(completions))

    def apply_button_press(self, fields: DraftFields, pressed_button: str) -> DraftFields:
        """Return the form's values after Enter: the command joins the lines that ran."""
        del pressed_button
        return {
            **fields,
            "ran": [*fields.get("ran", ()), *fields.get("command", ())],
            "command": [],
        }

    def grade(
        self, answer: LabSpec, raw: SubmittedFields, credit_rule: str
    ) -> GradeResult | UnreadableResponse:
        """Grade a session and a diagnosis; `ran` has the lines, `answer` the key of the option.

        The goal is half of the points, the diagnosis the other half; each harmful command takes
        a quarter away.
        """
        sent_keys = set(raw.get("answer", ()))
        chosen = [o for o in answer.diagnoses if o.key in sent_keys]
        if len(chosen) != 1:
            message = "Choose one diagnosis only." if chosen else "No diagnosis is chosen."
            return UnreadableResponse(message, "What you typed is kept. Nothing was counted.")
        review, right = self.build_session_review(answer, raw), chosen[0].right
        goal = len(review.session.reached_goals) / max(1, len(answer.lab.goal_ids))
        score = (goal + right) / 2 - _HARMFUL_COMMAND_PENALTY * len(review.harmful_entries)
        if credit_rule == "off":
            score = float(score >= 1)
        return GradeResult(
            score=max(0.0, score),
            score_basis=_describe_score_basis(review, answer.lab, right=right),
            parsed_response={
                "chosen": [chosen[0].key],
                "lines": [e.typed_line for e in review.session.entries],
            },
            part_results=list_option_results(answer.diagnoses, sent_keys),
            given_answer=join_option_letters(answer.diagnoses, chosen),
            right_answer=join_option_letters(
                answer.diagnoses, [o for o in answer.diagnoses if o.right]
            ),
            feedback=escape_typed_text(_describe_review(review, answer.lab, right=right)),
        )

    def build_some_valid_response(self, answer: LabSpec) -> SubmittedFields:
        return {"answer": [answer.diagnoses[0].key]}

    def build_session_review(self, answer: LabSpec, raw: SubmittedFields) -> LabReview:
        lab, session = answer.lab, replay_lab_lines(answer.lab, _read_executed_lines(raw))
        shortest_path = find_shortest_solution(lab) or ()
        entry_by_command = {
            n: entry for entry in reversed(session.entries) for n in entry.command_indices
        }
        harmful = (
            n for n in dict.fromkeys(session.executed_command_indices) if lab.commands[n].harmful
        )
        needless = (
            e.typed_line
            for e in session.entries
            if e.command_indices
            and not e.harm_note.html
            and not set(shortest_path) & set(e.command_indices)
        )
        return LabReview(
            session,
            tuple(lab.commands[n] for n in shortest_path),
            tuple(entry_by_command[n] for n in harmful),
            tuple(dict.fromkeys(needless)),
        )

    def render_card_faces_below_stem(self, answer: LabSpec, render_gap: RenderGap) -> CardFacesHtml:
        del render_gap
        options_html, answer_html = render_choice_card_faces(answer.diagnoses)
        steps = [
            f"<code>{escape(c.first_spelling)}</code>{render_feedback(c.note)}"
            for c in self.build_session_review(answer, {}).shortest_commands
        ]
        question = "<p>Which commands tell, and what is the diagnosis?</p>"
        return CardFacesHtml(
            question + options_html, f"{answer_html}<ol>{render_list_items(steps)}</ol>"
        )

    def collect_text_or_html_below_stem(self, answer: LabSpec) -> str:
        """Return all that a learner may read: diagnoses, commands and outputs."""
        lab = answer.lab
        texts = [c.output.plain for c in lab.commands] + [c.first_spelling for c in lab.commands]
        return " ".join([*(o.text.plain for o in answer.diagnoses), *texts])

    def sample_responses(self, answer: LabSpec) -> Iterator[LabeledResponse]:
        """Yield the shortest way with each diagnosis, each harmful command, each state."""
        lab = answer.lab
        shortest_lines = [
            c.sample_line_without_prompt
            for c in self.build_session_review(answer, {}).shortest_commands
        ]
        options = sorted(answer.diagnoses, key=lambda o: not o.right)
        for option in options:
            response = {"ran": shortest_lines, "answer": [option.key]}
            yield LabeledResponse(f"Goal reached, “{option.text.plain}”", response)
        right = {"answer": [options[0].key]} if options else {}
        yield LabeledResponse("Nothing typed, right diagnosis", right)
        for state, path in find_shortest_path_by_state(lab).items():
            lines = [lab.commands[n].sample_line_without_prompt for n in path]
            available = [
                lab.commands[n] for n in CommandMatcher(lab).list_available_command_indices(state)
            ]
            lines += [c.sample_line_without_prompt for c in available if not c.to and not c.harmful]
            label = f"All answers in the state “{state}”"
            yield LabeledResponse(label, {"ran": lines[:MOST_LINES]})
            for command in available:
                if command.harmful:
                    run_lines = [
                        *(lab.commands[n].sample_line_without_prompt for n in path),
                        command.sample_line_without_prompt,
                    ]
                    label = f"Harmful in “{state}”: {command.first_spelling}"
                    yield LabeledResponse(label, {"ran": run_lines, **right})

    def count_response_patterns(
        self, responses: Iterable[SubmittedResponse[LabSpec]]
    ) -> dict[str, Counter[str]]:
        """Return what was typed first, the last command of those who missed the goal, what failed.

        A line that had no answer counts once for each learner.
        """
        first, last, refused = Counter[str](), Counter[str](), Counter[str]()
        for response in responses:
            lab = response.drawn_answer.lab
            session = replay_lab_lines(lab, _read_executed_lines(response.fields))
            names = [
                lab.commands[e.command_indices[0]].first_spelling
                if e.command_indices
                else e.typed_line + " (no answer)" * e.is_refused
                for e in session.entries
            ]
            first.update(names[:1])
            refused.update({entry.typed_line for entry in session.entries if entry.is_refused})
            if len(session.reached_goals) < len(lab.goal_ids):
                last.update(names[-1:] or ["nothing was typed"])
        return {
            "Typed first": first,
            "Stopped short of the goal after": last,
            "Had no answer": refused,
        }

    def compute_guess_score(self, answer: LabSpec, credit_rule: str) -> float:
        """Return the guess rate: without a command, the diagnosis is half of the points."""
        return 0.0 if credit_rule == "off" else 0.5 / max(1, len(answer.diagnoses))

    def compute_guess_percent(self, answer: LabSpec) -> float | None:
        return 100 * self.compute_guess_score(answer, "")


def _read_executed_lines(raw: DraftFields) -> tuple[str, ...]:
    lines = (" ".join(line.split())[:LONGEST_LINE] for line in raw.get("ran", ()))
    return tuple(line for line in lines if line)[:MOST_LINES]


def _describe_score_basis(review: LabReview, lab: Lab, *, right: bool) -> str:
    """Return in words how the points of a session and a diagnosis come about."""
    basis = (
        f"half for the goal ({len(review.session.reached_goals)} of {len(lab.goal_ids)} steps), "
    )
    basis += f"half for the diagnosis ({'right' if right else 'not right'})"
    if review.harmful_entries:
        basis += f", less a quarter for each harmful command ({len(review.harmful_entries)})"
    return basis


def _describe_review(review: LabReview, lab: Lab, *, right: bool) -> str:
    """Return in sentences what was reached, what did harm, and whether the diagnosis is right."""
    goals, reached = len(lab.goal_ids), len(review.session.reached_goals)
    run_count, needed_count = (
        len(review.session.executed_command_indices),
        len(review.shortest_commands),
    )
    text = f"Goal reached with {run_count} command{'s' if run_count != 1 else ''}"
    text += f"; {needed_count} are enough." if needed_count < run_count else "."
    if reached < goals:
        text = f"Goal not reached: {reached} of {goals} steps."
    harmful_lines = [f"“{entry.typed_line}”" for entry in review.harmful_entries]
    text += f" Harmful: {', '.join(harmful_lines)}." if harmful_lines else ""
    return f"{text} The diagnosis is {'right' if right else 'not right'}."
