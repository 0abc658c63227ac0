"""Place questions: click a region of a figure."""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from markdown_it.token import Token
from markupsafe import Markup

from app.markup.html_renderer import render_tokens
from app.markup.images import WIDTHS, build_narrow_variant_file_name, render_svg_opening_tag
from app.markup.markdown_tokens import plain_text
from app.markup.model import RegionBox, SvgFigure
from app.markup.text import is_inside_its_folder, is_slug
from app.questions.option_parsing import (
    Choice,
    ParsedOption,
    make_option_key,
    render_optional_rich_text,
    report_if_no_option_right,
    report_if_several_options_right,
    report_if_too_few_options,
    report_wrong_options_without_feedback,
)
from app.questions.question_type import (
    AuthoredItem,
    CardFacesHtml,
    DraftFields,
    GradeResult,
    LabeledResponse,
    QuestionType,
    RenderGap,
    SubmittedFields,
    UnreadableResponse,
)
from app.questions.types.choice import (
    LETTERS,
    join_option_letters,
    list_option_results,
    render_choice_card_faces,
)
from app.widgets.svg import draw_circled_letter

_MAX_REGIONS = 12  # The style sheet marks as many regions.
# Pixels from the corner of a region to its letter.
_LETTER_OFFSET_X_PIXELS, _LETTER_OFFSET_Y_PIXELS = 4.0, 13.0
_UNMARKED_CLASS_BY_CLASS = {"hot": "box", "hot-line": "data", "on-hot": ""}
_HOT_CLASS = re.compile(r'class="(?:[^"]* )?hot[ "]')
_CLASS_ATTRIBUTE = re.compile(r'class="([^"]*)"')
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")


@dataclasses.dataclass(frozen=True, slots=True)
class PlaceRegion(Choice):
    """An option that is a region of the figure, named by its id; its text is the label."""

    region: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class PlaceSpec:
    """A figure of which one region is right.

    `drawings` are the wide figure and, if it exists, the narrow one for phones; empty
    until the files next to the question are read.
    """

    file: str
    regions: tuple[PlaceRegion, ...]
    drawings: tuple[SvgFigure, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class OptionMarker:
    """An option in a drawing: its key, its letter, the box of its region."""

    key: str
    letter: str
    region_box: RegionBox

    @property
    def letter_x(self) -> float:
        """Return the x of its letter: at the left edge, clear of the region's content."""
        return self.region_box.x - _LETTER_OFFSET_X_PIXELS

    @property
    def letter_y(self) -> float:
        """Return the y of its letter: below the text at the top of the region."""
        return self.region_box.y + min(_LETTER_OFFSET_Y_PIXELS, self.region_box.height / 2)


@dataclasses.dataclass(frozen=True, slots=True)
class LetteredDrawing:
    """The wide or narrow drawing with a marker for each option, right or wrong."""

    width_name: str
    drawing: SvgFigure
    markers: tuple[OptionMarker, ...]

    def without_answer_marks(self) -> "LetteredDrawing":
        """Return the drawing as an open question shows it: a marked part is often the answer.

        Sentences of the text alternative that mention a mark are left out too.
        """
        replacements = (
            _UNMARKED_CLASS_BY_CLASS
            if _HOT_CLASS.search(self.drawing.inner_markup)
            else {"hot-line": "data"}
        )

        def unmark(match: re.Match[str]) -> str:
            names = (replacements.get(name, name) for name in match[1].split())
            return f'class="{" ".join(filter(None, names))}"'

        sentences = _SENTENCE_END.split(self.drawing.desc)
        drawing = dataclasses.replace(
            self.drawing,
            inner_markup=_CLASS_ATTRIBUTE.sub(unmark, self.drawing.inner_markup),
            desc=" ".join(sentence for sentence in sentences if "marked" not in sentence),
        )
        return dataclasses.replace(self, drawing=drawing)

    def render_opening_svg_tag(self, id_prefix: str) -> Markup:
        """Return the opening tag of its `<svg>`; ids begin with `id_prefix`."""
        return Markup(render_svg_opening_tag(self.drawing, self.width_name, id_prefix))  # noqa: S704 - the figure was sanitized


class PlaceType(QuestionType[PlaceSpec]):
    """Regions of a figure, of which one is right.

    A region in the figure is the label of a radio button in the list. Both send the same
    value, without a script.
    """

    name = "place"
    answer_classes = (PlaceSpec, PlaceRegion)
    template = "questions/place.html"
    comment_keys = ("figure",)
    key_implying_type = "figure"
    options_attribute = "regions"
    responses_are_option_keys = True
    min_exam_options = 3

    def is_implied_by_options(self, options: Sequence[ParsedOption]) -> bool:
        """Recognize the type: each option begins with the id of a region, as code."""
        return bool(options) and all(_begins_with_code(option) for option in options)

    def parse_answer(self, authored: AuthoredItem) -> PlaceSpec:
        file = authored.comment.field_text("figure")
        location = authored.comment.field_location("figure")
        if file.endswith(".svg") and is_inside_its_folder(file):
            authored.parse_context.add_reference("file", file, *location)
            authored.parse_context.add_reference("drawing", file, *location)
        else:
            message = "The question names no drawing." if not file else ""
            message = message or f"“{file[:60]}” is no SVG file beside this one."
            hint = "Write figure: and the name of an SVG file in the same folder."
            authored.parse_context.report("E58", *location, message, hint)
        taken_keys: set[str] = set()
        regions = [
            _parse_option_with_region_id(option, taken_keys, authored)
            for option in authored.parts.options
        ]
        return PlaceSpec(file, tuple(regions))

    def report_answer_problems(self, answer: PlaceSpec, authored: AuthoredItem) -> None:
        """Report unless one of several different regions is right (E20 to E23, E59, E88, W25)."""
        options, parse_context = authored.parts.options, authored.parse_context
        first = options[0].line if options else authored.source.line
        report_if_no_option_right(options, first, parse_context)
        use = authored.exam_use
        report_if_too_few_options(
            len(options), self.min_exam_options, first, parse_context, exam_use=use
        )
        report_wrong_options_without_feedback(options, parse_context)
        report_if_several_options_right(options, "regions", parse_context)
        if len(options) > _MAX_REGIONS:
            line, message = options[_MAX_REGIONS].line, f"The question has {len(options)} regions."
            parse_context.report("E88", line, 1, message, f"Use at most {_MAX_REGIONS}.")
        _report_missing_or_repeated_regions(answer, authored)

    def figure_file_names(self, answer: PlaceSpec) -> tuple[str, ...]:
        return answer.file, build_narrow_variant_file_name(answer.file)

    def embed_figures(
        self, answer: PlaceSpec, figure_by_file_name: Mapping[str, SvgFigure]
    ) -> PlaceSpec:
        names = self.figure_file_names(answer)
        drawings = tuple(figure_by_file_name[name] for name in names if name in figure_by_file_name)
        return dataclasses.replace(answer, drawings=drawings)

    def build_template_data(
        self, answer: PlaceSpec, draft_fields: DraftFields
    ) -> tuple[LetteredDrawing, ...]:
        del draft_fields
        return build_lettered_drawings(answer)

    def grade(
        self, answer: PlaceSpec, raw: SubmittedFields, credit_rule: str
    ) -> GradeResult | UnreadableResponse:
        """Grade the chosen region; `answer` in the response contains its key."""
        del credit_rule
        sent_keys = set(raw.get("answer", ()))
        chosen = [o for o in answer.regions if o.key in sent_keys]
        if not chosen:
            hint = "Select a part in the drawing or in the list."
            return UnreadableResponse("No part is chosen.", hint)
        if len(chosen) > 1:
            return UnreadableResponse("Choose one part only.", "Nothing was counted.")
        return GradeResult(
            score=float(chosen[0].right),
            parsed_response={"chosen": [chosen[0].key]},
            part_results=list_option_results(answer.regions, sent_keys),
            given_answer=join_option_letters(answer.regions, chosen),
            right_answer=join_option_letters(
                answer.regions, [o for o in answer.regions if o.right]
            ),
        )

    def build_some_valid_response(self, answer: PlaceSpec) -> SubmittedFields:
        return {"answer": [answer.regions[0].key]}

    def render_card_faces_below_stem(
        self, answer: PlaceSpec, render_gap: RenderGap
    ) -> CardFacesHtml:
        """Return the figure with its letters above the labels, then the right one."""
        del render_gap
        options_html, answer_html = render_choice_card_faces(answer.regions)
        figure = "".join(map(_render_lettered_svg, build_lettered_drawings(answer)))
        return CardFacesHtml(f'<div class="dias">{figure}</div>{options_html}', answer_html)

    def sample_responses(self, answer: PlaceSpec) -> Iterator[LabeledResponse]:
        for option in sorted(answer.regions, key=lambda o: not o.right):
            yield LabeledResponse(option.text.plain, {"answer": [option.key]})

    def compute_guess_score(self, answer: PlaceSpec, credit_rule: str) -> float:
        del credit_rule
        return 1 / max(1, len(answer.regions))

    def compute_guess_percent(self, answer: PlaceSpec) -> float | None:
        return 100 * self.compute_guess_score(answer, "")


def split_region_id_and_label(option: ParsedOption) -> tuple[str, Token]:
    label = Token("inline", "", 0, map=option.text_token.map, children=[])
    children = list(option.text_token.children or [])
    while children and children[0].type == "text" and not children[0].content.strip():
        children.pop(0)
    region_id = ""
    if children and children[0].type == "code_inline":
        region_id = children.pop(0).content.strip()
    if children and children[0].type == "text":
        first = children[0].copy()
        first.content = first.content.lstrip()
        children[0] = first
    label.children = [c for c in children if c.type != "text" or c.content]
    label.content = plain_text([label])
    return region_id, label


def build_lettered_drawings(answer: PlaceSpec) -> tuple[LetteredDrawing, ...]:
    return tuple(
        LetteredDrawing(width, drawing, _build_option_markers(answer, drawing))
        for width, drawing in zip(WIDTHS, answer.drawings, strict=False)
    )


def _build_option_markers(answer: PlaceSpec, drawing: SvgFigure) -> tuple[OptionMarker, ...]:
    areas = {area.region: area for area in drawing.clickable_regions}
    return tuple(
        OptionMarker(o.key, LETTERS[number % len(LETTERS)], areas[o.region])
        for number, o in enumerate(answer.regions)
        if o.region in areas
    )


def _parse_option_with_region_id(
    option: ParsedOption, taken_keys: set[str], authored: AuthoredItem
) -> PlaceRegion:
    region_id, label = split_region_id_and_label(option)
    if region_id:
        file = authored.comment.field_text("figure")
        location = authored.parse_context.locate_text(f"`{region_id}`", option.line, option.line)
        authored.parse_context.add_reference("drawing", f"{file}#{region_id}", *location)
    return PlaceRegion(
        make_option_key(authored.comment.id, option, taken_keys),
        render_tokens([label], authored.context),
        option.ticked,
        render_optional_rich_text(option.feedback, authored.context),
        region=region_id,
    )


def _report_missing_or_repeated_regions(answer: PlaceSpec, authored: AuthoredItem) -> None:
    """Report options without a region or label (E59), or with those of another option (E23)."""
    seen: dict[str, int] = {}
    for option, region in zip(authored.parts.options, answer.regions, strict=False):
        label = " ".join(region.text.plain.lower().split())
        if not region.region:
            message = f"“{option.plain_text[:50]}” names no region of the drawing."
            suggestion = _suggest_option_with_region(option.plain_text[:50])
            hint = f"Begin it with the id of one: - {option.checkbox} {suggestion}."
            option.report_problem("E59", message, hint, authored.parse_context)
        elif not label:
            message = f"The region “{region.region}” has no label."
            corrected = f"{option.checkbox} `{region.region}`"
            hint = f"Write its name behind it: - {corrected} The name."
            option.report_problem("E59", message, hint, authored.parse_context)
        earlier_line = seen.get(region.region) or seen.get(f" {label}")
        if earlier_line and region.region and label:
            message = f"This option says the same as the one in line {earlier_line}."
            hint = "Change or delete one of them."
            authored.parse_context.report("E23", option.line, 1, message, hint)
        seen.setdefault(region.region, option.line)
        seen.setdefault(f" {label}", option.line)


def _suggest_option_with_region(option_text: str) -> str:
    """Return a corrected option; its first word may be the intended region."""
    first, _, rest = option_text.partition(" ")
    region = first.rstrip(":")
    return f"`{region}` {rest}" if rest and is_slug(region) else f"`id` {option_text}"


def _render_lettered_svg(lettered_drawing: LetteredDrawing) -> str:
    """Return a drawing with its letters, for the face of a card."""
    drawing = lettered_drawing.without_answer_marks().drawing
    spots = "".join(
        draw_circled_letter(s.letter, s.letter_x, s.letter_y) for s in lettered_drawing.markers
    )
    svg = (
        f'<svg class="g dia" viewBox="0 0 {drawing.width:g} {drawing.height:g}" '
        f'role="img" aria-label="{escape(drawing.desc)}" fill="none" '
        'stroke="currentColor" font-family="sans-serif" font-size="13">'
        f"{drawing.inner_markup}{spots}</svg>"
    )
    # Without a style sheet the phone variant could not be hidden, so use one figure.
    hidden = " hidden" if lettered_drawing.width_name == "narrow" else ""
    return f'<div class="{lettered_drawing.width_name}"{hidden}>{svg}</div>'


def _begins_with_code(option: ParsedOption) -> bool:
    children = [
        t for t in option.text_token.children or [] if t.type != "text" or t.content.strip()
    ]
    return bool(children) and children[0].type == "code_inline"
