"""The served course: assembled from parsed files, and checked."""

import bisect
import dataclasses
import datetime as dt
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from app.content import course_rules
from app.content.course_rules import (
    ParsedCourse,
    check_answer_keys_changed_since_review,
    check_duplicate_card_fronts,
    check_exam_and_objective_coverage,
    check_links_to_drafts,
    check_topic_completeness,
    check_topic_order_titles_and_prerequisites,
)
from app.content.file_watcher import (
    CachingCourseFileParser,
    check_folder_layout,
    pause_garbage_collection,
)
from app.content.id_ownership import ItemIdClaim
from app.content.link_and_picture_rules import (
    add_image_sizes,
    explain_unshowable_image,
    find_drawing_and_phone_variant,
)
from app.content.parse_cache import compute_parser_code_hash
from app.content.parsed_file import ParsedFile, map_lock_entries_by_id
from app.content.uncomputed_amounts import check_plain_amounts
from app.markup.images import render_image_block
from app.markup.model import (
    REVERSE,
    CitedSource,
    ExamBlueprint,
    Flashcard,
    GlossaryTerm,
    HtmlBlock,
    ImageBlock,
    Piece,
    QuestionBlock,
    Section,
    Status,
    SvgFigure,
    Syllabus,
    Topic,
)
from app.markup.problems import (
    ContentProblem,
    ProblemLocation,
    drop_and_merge_consequential_problems,
    log_error_and_make_problem,
    make_problem,
    topic_slug_of_path,
)
from app.markup.text import content_hash, repr_for_content_hash
from app.questions import types
from app.questions.model import Question

Item = TypeVar("Item", Topic, Question, Flashcard)
_STATUS_ORDER: tuple[Status, ...] = ("live", "review", "draft")


@dataclasses.dataclass(frozen=True, slots=True)
class ItemsWithDrafts:
    """All topics, questions and cards of a course, drafts included."""

    topics: Mapping[str, Topic]
    questions: Mapping[str, Question]
    cards: Mapping[str, Flashcard]


NO_CONTENT = ItemsWithDrafts({}, {}, {})


def drop_unpublished_items(items: Mapping[str, Item]) -> dict[str, Item]:
    return {name: item for name, item in items.items() if item.status == "live"}


class ItemStart(NamedTuple):
    line: int
    is_live: bool


def drop_scaffold_warnings_in_drafts(
    problems: Iterable[ContentProblem], items_with_drafts: ItemsWithDrafts
) -> list[ContentProblem]:
    """Drop W77 (scaffold text) in what is not live: it is allowed there."""
    draft_topics = {t.slug for t in items_with_drafts.topics.values() if t.status != "live"}
    starts: dict[str, list[ItemStart]] = {}
    questions, cards = items_with_drafts.questions, items_with_drafts.cards
    items: list[Question | Flashcard] = [*questions.values(), *cards.values()]
    for item in items:
        start = ItemStart(item.place.line, is_live=item.status == "live")
        starts.setdefault(item.place.path, []).append(start)
    for lines in starts.values():
        lines.sort()
    topics_with_drafts = {item.topic for item in items if item.status != "live"}

    def is_unpublished(problem: ContentProblem) -> bool:
        is_drawing = problem.path.endswith(".svg")
        topics = draft_topics | topics_with_drafts if is_drawing else draft_topics
        item_starts = starts.get(problem.path, [])
        at = bisect.bisect_right(item_starts, ItemStart(problem.line, is_live=True)) - 1
        is_in_draft = at >= 0 and not item_starts[at].is_live
        return is_in_draft or topic_slug_of_path(problem.path) in topics

    return [p for p in problems if p.code != "W77" or not is_unpublished(p)]


# item id: new option key to the key whose counts it continues
CountedOptionKeys = Mapping[str, Mapping[str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class CheckedItems:
    """The valid topics, questions and cards, and every problem of the course.

    `items_with_drafts` also contains those that are not live.
    """

    topics: dict[str, Topic]
    questions: dict[str, Question]
    cards: dict[str, Flashcard]
    problems: tuple[ContentProblem, ...]
    items_with_drafts: ItemsWithDrafts = NO_CONTENT


def assemble_and_check_items(parsed_course: ParsedCourse) -> CheckedItems:
    """Assemble the files. Items with errors are left out."""
    owners = course_rules.find_id_owners(parsed_course)
    pages = {r.topic.slug: r.topic for r in parsed_course.parsed_files.values() if r.topic}
    questions, cards = _collect_owned_items(parsed_course, pages, owners.owner_claim_by_id)
    problems = [
        *_check_rules_across_files(parsed_course, pages, questions, cards),
        *_check_changed_answer_keys_of_owners(parsed_course, owners.owner_claim_by_id),
    ]
    missing_page_problems = _check_items_without_topic(parsed_course, pages)
    problems += missing_page_problems
    errors = [p for p in problems if p.item and p.severity == "error"]
    excluded_items = {ItemInFile(p.item, f) for p in errors for f in _list_possible_item_files(p)}
    excluded_items |= {
        ItemInFile(fingerprint.id, p.path)
        for p in missing_page_problems
        for fingerprint in parsed_course.parsed_files[p.path].fingerprints
    }
    questions = {
        i: q for i, q in questions.items() if ItemInFile(i, q.place.path) not in excluded_items
    }
    cards = {
        i: c
        for i, c in cards.items()
        if ItemInFile(i.removesuffix(REVERSE), c.place.path) not in excluded_items
    }
    authored = ItemsWithDrafts(
        _build_topics_in_syllabus_order(parsed_course, pages, questions, cards), questions, cards
    )
    questions, cards = drop_unpublished_items(questions), drop_unpublished_items(cards)
    topics = _build_topics_in_syllabus_order(
        parsed_course, drop_unpublished_items(pages), questions, cards
    )
    problems += owners.problems  # these leave out copies of an item, but not the owner of an id
    # Parsed files already lack broken items. A file that broke is shown in its last
    # good version, so its current problems must not remove items.
    problems += [p for r in parsed_course.parsed_files.values() for p in r.problems]
    problems += check_exam_and_objective_coverage(
        parsed_course, authored.questions.values(), authored.cards.values()
    )
    problems += check_topic_completeness(
        topics, parsed_course.parsed_files, authored.questions, authored.cards
    )
    all_problems = tuple(sorted(set(drop_scaffold_warnings_in_drafts(problems, authored))))
    return CheckedItems(topics, questions, cards, all_problems, authored)


def _check_rules_across_files(
    parsed_course: ParsedCourse,
    pages: Mapping[str, Topic],
    questions: Mapping[str, Question],
    cards: Mapping[str, Flashcard],
) -> Iterator[ContentProblem]:
    """Check rules across files, except for ids and counts."""
    yield from course_rules.check_cross_references(parsed_course)
    if parsed_course.syllabus.offers_calculators:
        yield from check_plain_amounts(
            {p: r.amounts for p, r in parsed_course.parsed_files.items()}
        )
    yield from course_rules.check_stale_reviews(parsed_course)
    yield from course_rules.check_near_duplicate_stems(parsed_course, questions)
    yield from check_duplicate_card_fronts(cards)
    yield from check_topic_order_titles_and_prerequisites(parsed_course, pages)
    yield from check_links_to_drafts(parsed_course, pages)
    yield from _check_questions_without_objective(questions, pages)
    yield from (_build_unsourced_problem(q) for q in questions.values() if not q.sources)


def _check_changed_answer_keys_of_owners(
    parsed_course: ParsedCourse, owner_claim_by_id: Mapping[str, ItemIdClaim]
) -> Iterator[ContentProblem]:
    """Report W19 for the owners of ids only: the key of a copy tells nothing about reviews."""
    for problem in check_answer_keys_changed_since_review(
        parsed_course.parsed_files, parsed_course.checked_on
    ):
        if _is_owner_at(owner_claim_by_id.get(problem.item), problem.path, problem.line):
            yield problem


class ItemInFile(NamedTuple):
    id: str
    path: str


def _list_possible_item_files(problem: ContentProblem) -> tuple[str, ...]:
    """Return the files that may contain a problem's item. A drawing may be used by several."""
    if not problem.path.endswith(".svg"):
        return (problem.path,)
    folder = problem.path.split("/")[:2]
    names = "concept.md", "quiz.md", "cards.md"
    return tuple("/".join([*folder, name]) for name in names)


def _build_unsourced_problem(question: Question) -> ContentProblem:
    location = ProblemLocation(question.place.path, question.place.line)
    hint = "Write source: key in its comment or in the front matter."
    message = "The question names no source."
    return make_problem(location, "E16", message, hint, question.id, is_consequence=True)


def _check_questions_without_objective(
    questions: Mapping[str, Question], pages: Mapping[str, Topic]
) -> Iterator[ContentProblem]:
    """Report E14 once per page: neither it nor some of its questions name an objective."""
    counts = Counter(q.topic for q in questions.values() if not q.objectives)
    for slug, count in counts.items():
        if slug in pages:
            message = f"Neither the page nor {count} of its questions name an objective."
            hint = "Write objective: with a number of syllabus.toml into the front matter."
            yield make_problem(
                ProblemLocation(pages[slug].place.path), "E14", message, hint, is_consequence=True
            )


def _check_items_without_topic(
    parsed_course: ParsedCourse, pages: Mapping[str, Topic]
) -> list[ContentProblem]:
    problems = []
    handled_slugs = set(pages)
    for path, parsed_file in parsed_course.parsed_files.items():
        slug = topic_slug_of_path(path)
        if slug and slug not in handled_slugs and parsed_file.fingerprints:
            handled_slugs.add(slug)
            message = f"The topic “{slug}” has no concept.md."
            hint = "Write its page: a title, a source and a paragraph are a start."
            problems.append(make_problem(ProblemLocation(path), "E61", message, hint))
    return problems


class OwnedItems(NamedTuple):
    questions: dict[str, Question]
    cards: dict[str, Flashcard]


def _collect_owned_items(
    parsed_course: ParsedCourse,
    pages: Mapping[str, Topic],
    owner_claim_by_id: Mapping[str, ItemIdClaim],
) -> OwnedItems:
    """Return the items that own their ids, completed from their page and drawings."""
    counted_keys = _map_option_keys_to_former_keys(parsed_course, owner_claim_by_id)
    questions: dict[str, Question] = {}
    cards: dict[str, Flashcard] = {}
    for parsed_file in parsed_course.sort_files_of_listed_topics_first():
        for question in parsed_file.questions:
            if _is_owner_at(
                owner_claim_by_id.get(question.id), parsed_file.path, question.place.line
            ):
                full_question = _inherit_metadata_and_status_from_page(question, pages)
                full_question = _embed_figures_and_derive_revision(full_question, parsed_course)
                if names := counted_keys.get(question.id):
                    kind = types.question_type_of(full_question)
                    answer = kind.rename_option_keys(full_question.answer, names)
                    full_question = dataclasses.replace(full_question, answer=answer)
                questions[question.id] = full_question
        for card in parsed_file.cards:
            owner = owner_claim_by_id.get(card.id.removesuffix(REVERSE))
            if _is_owner_at(owner, parsed_file.path, card.place.line):
                cards[card.id] = _inherit_metadata_and_status_from_page(card, pages)
    return OwnedItems(questions, cards)


def _is_owner_at(owner: ItemIdClaim | None, path: str, line: int) -> bool:
    return owner is not None and (owner.path, owner.fingerprint.line) == (path, line)


def _inherit_metadata_and_status_from_page(item: Any, pages: Mapping[str, Topic]) -> Any:
    """Return an item with missing objectives, sources and level taken from its page."""
    page = pages.get(item.topic)
    if page is None:
        return item
    has_all_metadata = item.objectives and item.sources and not page.level
    if has_all_metadata and page.status == item.status:
        return item
    return dataclasses.replace(
        item,
        objectives=item.objectives or page.objectives,
        sources=item.sources or page.sources,
        level=item.level or page.level,
        # The less finished of the two: an item is never ahead of its page.
        status=max(item.status, page.status, key=_STATUS_ORDER.index),
    )


def _embed_figures_and_derive_revision(question: Question, parsed_course: ParsedCourse) -> Question:
    kind = types.question_type_of(question)
    folder = question.place.path.rpartition("/")[0]
    parsed_files = {
        name: parsed_course.parsed_files.get(f"{folder}/{name}")
        for name in kind.figure_file_names(question.answer)
    }
    drawings = {
        name: parsed_file.drawing
        for name, parsed_file in parsed_files.items()
        if parsed_file and isinstance(parsed_file.drawing, SvgFigure)
    }
    if not drawings:
        return question
    answer = kind.embed_figures(question.answer, drawings)
    revision = content_hash(f"{question.revision} {repr_for_content_hash(drawings)}")
    return dataclasses.replace(question, answer=answer, revision=revision)


def _map_option_keys_to_former_keys(
    parsed_course: ParsedCourse, owner_claim_by_id: Mapping[str, ItemIdClaim]
) -> CountedOptionKeys:
    return {
        entry.id: names
        for entry in map_lock_entries_by_id(parsed_course.parsed_files).values()
        if entry.id in owner_claim_by_id
        and (
            names := course_rules.map_new_option_keys_to_former_keys(
                entry, owner_claim_by_id[entry.id].fingerprint
            )
        )
    }


def _build_topics_in_syllabus_order(
    parsed_course: ParsedCourse,
    pages: Mapping[str, Topic],
    questions: Mapping[str, Question],
    cards: Mapping[str, Flashcard],
) -> dict[str, Topic]:
    """Return the topics with their items, in syllabus order, unlisted ones last."""
    order = [s for s in parsed_course.syllabus.topics if s in pages]
    order += [s for s in pages if s not in order]
    question_ids: dict[str, list[str]] = {slug: [] for slug in order}
    card_ids: dict[str, list[str]] = {slug: [] for slug in order}
    for question in questions.values():
        question_ids.get(question.topic, []).append(question.id)
    for card in cards.values():
        card_ids.get(card.topic, []).append(card.id)
    return {
        slug: dataclasses.replace(
            pages[slug],
            sections=_build_served_sections(pages[slug], questions, parsed_course),
            questions=tuple(question_ids[slug]),
            cards=tuple(card_ids[slug]),
        )
        for slug in order
    }


def _build_served_sections(
    page: Topic, questions: Mapping[str, Question], parsed_course: ParsedCourse
) -> tuple[Section, ...]:
    """Return the sections without omitted questions, with their drawings."""
    folder = page.place.path.rpartition("/")[0]
    image_counts: Counter[str] = Counter()
    sections = []
    for section in page.sections:
        pieces: list[Piece] = []
        for piece in section.pieces:
            if isinstance(piece, ImageBlock):
                image_counts[piece.file] += 1
                path = f"{folder}/{piece.file}"
                drawings = find_drawing_and_phone_variant(parsed_course.parsed_files, path)
                pieces.append(
                    HtmlBlock(render_image_block(piece, drawings, image_counts[piece.file]))
                )
            elif not isinstance(piece, QuestionBlock) or piece.question in questions:
                pieces.append(piece)
        sections.append(dataclasses.replace(section, pieces=tuple(pieces)))
    return tuple(sections)


def compute_course_version(parsed_files: Mapping[str, ParsedFile]) -> str:
    """Return a hash that changes with any content, and with the code that parses it."""
    digest = hashlib.sha256(compute_parser_code_hash().encode())
    for path, parsed_file in sorted(parsed_files.items()):
        # A broken file is shown in its last good version, but its problems are new.
        entry = f"{path}\0{parsed_file.text_digest}\0{parsed_file.problems}"
        digest.update(entry.encode(errors="replace"))
    return digest.hexdigest()[:16]


_NO_FILES: Mapping[str, ParsedFile] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Course:
    """One consistent state of the course. `version` changes when any content does.

    `outdated_paths` are files shown in their last good version.
    """

    version: str
    syllabus: Syllabus
    topics: Mapping[str, Topic]
    questions: Mapping[str, Question]
    cards: Mapping[str, Flashcard]
    glossary: Mapping[str, GlossaryTerm]
    sources: Mapping[str, CitedSource]
    exams: Mapping[str, ExamBlueprint]
    problems: tuple[ContentProblem, ...]
    outdated_paths: tuple[str, ...] = ()
    items_with_drafts: ItemsWithDrafts = NO_CONTENT

    def with_drafts(self) -> "Course":
        """Return the course with everything that is not live, for authors only."""
        items = self.items_with_drafts
        if items is NO_CONTENT:
            return self
        return dataclasses.replace(
            self, topics=items.topics, questions=items.questions, cards=items.cards
        )


def load_course(course_folder: Path, cache_folder: Path | None = None) -> Course:
    """Load the whole course in `course_folder`. `cache_folder` is a folder for parsed files."""
    with pause_garbage_collection():
        parsed_files = (
            CachingCourseFileParser(course_folder, cache_folder).parse_current_files().parsed_files
        )
        return assemble_course(parsed_files, course_folder)


def assemble_course(
    parsed_files: Mapping[str, ParsedFile],
    course_folder: Path,
    previous_files: Mapping[str, ParsedFile] = _NO_FILES,
) -> Course:
    """Assemble parsed files into a course, checked as of today.

    `previous_files` are the files of the previous state. If one file makes assembling fail,
    its earlier version is used.
    """
    parsed_course, checked_items = _assemble_or_fall_back(
        parsed_files, course_folder, None, previous_files
    )
    parsed_files = parsed_course.parsed_files
    return Course(
        compute_course_version(parsed_files),
        parsed_course.syllabus,
        {
            slug: add_image_sizes(topic, course_folder)
            for slug, topic in checked_items.topics.items()
        },
        checked_items.questions,
        checked_items.cards,
        {t.anchor: t for r in parsed_files.values() for t in r.glossary_terms},
        {s.key: s for r in parsed_files.values() for s in r.cited_sources},
        {r.exam.slug: r.exam for r in parsed_files.values() if r.exam},
        tuple(
            drop_and_merge_consequential_problems(
                [*check_folder_layout(parsed_files, course_folder), *checked_items.problems]
            )
        ),
        tuple(path for path, parsed_file in parsed_files.items() if parsed_file.is_outdated),
        checked_items.items_with_drafts,
    )


def find_problems(
    parsed_files: Mapping[str, ParsedFile], course_folder: Path, checked_on: dt.date | None = None
) -> tuple[ContentProblem, ...]:
    """Return the problems that `assemble_course` would find, without building the course."""
    checked_items = _assemble_or_fall_back(parsed_files, course_folder, checked_on).checked_items
    return tuple(
        drop_and_merge_consequential_problems(
            [*check_folder_layout(parsed_files, course_folder), *checked_items.problems]
        )
    )


class AssemblyResult(NamedTuple):
    """The files that were assembled, and the result."""

    parsed_course: ParsedCourse
    checked_items: CheckedItems


def _assemble_or_fall_back(
    parsed_files: Mapping[str, ParsedFile],
    folder: Path,
    today: dt.date | None,
    previous_files: Mapping[str, ParsedFile] = _NO_FILES,
) -> AssemblyResult:
    day = today or dt.datetime.now(dt.UTC).date()
    parsed_course = ParsedCourse(parsed_files, day, _find_picture_faults(parsed_files, folder))
    try:
        return AssemblyResult(parsed_course, assemble_and_check_items(parsed_course))
    except Exception as error:  # noqa: BLE001 - no file may stop the server
        return _assemble_without_failing_file(parsed_course, error, previous_files)


def _assemble_without_failing_file(
    parsed_course: ParsedCourse, error: Exception, previous_files: Mapping[str, ParsedFile]
) -> AssemblyResult:
    """Assemble the course without the current version of the one file that fails.

    If several files fail, the whole previous course is used.
    """
    for path, parsed_files in _iterate_fallback_file_sets(
        parsed_course.parsed_files, previous_files
    ):
        reduced_course = dataclasses.replace(parsed_course, parsed_files=parsed_files)
        try:
            checked_items = assemble_and_check_items(reduced_course)
        except Exception:  # noqa: BLE001, S112 - another file is at fault
            continue
        file_problems = (
            parsed_course.parsed_files[path].problems if path in parsed_course.parsed_files else ()
        )
        subject = "This file" if path in parsed_course.parsed_files else "The course"
        problem = log_error_and_make_problem(
            ProblemLocation(path or "syllabus.toml"), subject, error
        )
        problems = {*checked_items.problems, *file_problems, problem}
        checked_items = dataclasses.replace(checked_items, problems=tuple(sorted(problems)))
        return AssemblyResult(reduced_course, checked_items)
    problem = log_error_and_make_problem(ProblemLocation("syllabus.toml"), "The course", error)
    empty_course = dataclasses.replace(parsed_course, parsed_files={})
    return AssemblyResult(empty_course, CheckedItems({}, {}, {}, (problem,)))


class FallbackFileSet(NamedTuple):
    """Files to assemble, and the path of the one replaced or left out; "" for all."""

    replaced_path: str
    parsed_files: Mapping[str, ParsedFile]


def _iterate_fallback_file_sets(
    parsed_files: Mapping[str, ParsedFile], previous_files: Mapping[str, ParsedFile]
) -> Iterator[FallbackFileSet]:
    for path, parsed_file in parsed_files.items():
        trial_files = dict(parsed_files)
        del trial_files[path]
        if path in previous_files:
            trial_files[path] = dataclasses.replace(
                previous_files[path], problems=parsed_file.problems, is_outdated=True
            )
        yield FallbackFileSet(path, trial_files)
    if previous_files:
        files = previous_files.items()
        changed = {p for p, r in files if parsed_files.get(p) != r}
        marked = {p: dataclasses.replace(r, is_outdated=p in changed) for p, r in files}
        yield FallbackFileSet("", marked)


def _find_picture_faults(parsed_files: Mapping[str, ParsedFile], folder: Path) -> dict[str, str]:
    """Return the pictures that pages show, with what is wrong with each."""
    picture_paths = (
        f"{path.rpartition('/')[0]}/{reference.target}"
        for path, parsed_file in parsed_files.items()
        for reference in parsed_file.cross_references
        if reference.kind == "file"
    )
    return {name: explain_unshowable_image(folder, name) for name in picture_paths}
