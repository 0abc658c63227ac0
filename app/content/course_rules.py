"""Rules across the files of a course: references, coverage, topic order, reviews."""

import dataclasses
import datetime as dt
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from app.content.id_ownership import IdOwners, ItemIdClaim, assign_id_owners
from app.content.link_and_picture_rules import (
    check_drawing,
    check_link_target,
    check_picture,
    check_see_also_term,
)
from app.content.parsed_file import (
    ItemIdentityFingerprint,
    LockEntry,
    ParsedFile,
    map_lock_entries_by_id,
)
from app.markup.model import Flashcard, Syllabus, Topic
from app.markup.problems import (
    ContentProblem,
    CrossReference,
    ProblemLocation,
    make_problem,
    make_reference_problem,
)
from app.markup.text import (
    add_boundaries_in_unspaced_scripts,
    content_hash,
    find_closest_word_or_empty,
    is_slug,
    reduce_to_words,
    shorten_with_ellipsis,
    slugify,
    write_hint_for_unknown_word,
)
from app.questions import types
from app.questions.model import Question

_STALE_AFTER = dt.timedelta(days=365)
EMPTY_SYLLABUS = Syllabus("", "", (), ())
_SAME_STEM_SHARE = 0.9
_MOST_COMPARED = 500  # stems compared that share a rare word with another
_MOST_HINTS = 100  # unknown names for which a similar known name is searched


@dataclasses.dataclass(frozen=True, slots=True)
class ParsedCourse:
    """All parsed files of a course, and the date of the check.

    `fault_by_picture` says what is wrong with the pictures that pages show, empty if nothing.
    """

    parsed_files: Mapping[str, ParsedFile]
    checked_on: dt.date
    fault_by_picture: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def syllabus(self) -> Syllabus:
        """The syllabus, or an empty one."""
        parsed_file = self.parsed_files.get("syllabus.toml")
        return (parsed_file.syllabus if parsed_file else None) or EMPTY_SYLLABUS

    def list_objective_numbers(self) -> set[str]:
        return {o.number for d in self.syllabus.domains for o in d.objectives}

    def is_fully_readable(self, path: str) -> bool:
        parsed_file = self.parsed_files.get(path)
        return parsed_file is not None and not any(
            p.code in {"E00", "E10", "E11"} for p in parsed_file.problems
        )

    def is_any_file_present_and_none_unreadable(self, paths: Iterable[str]) -> bool:
        """Return whether at least one of the files exists, and all existing ones were readable."""
        existing_paths = [path for path in paths if path in self.parsed_files]
        return bool(existing_paths) and all(map(self.is_fully_readable, existing_paths))

    def guess_new_slug_by_renamed_topic(self) -> dict[str, str]:
        """Map listed topics without a folder to the folder they were probably renamed to."""
        order = self.syllabus.topics
        folders = {p.split("/")[1] for p in self.parsed_files if p.startswith("topics/")}
        missing_topics = [slug for slug in order if slug not in folders]
        pages = [r.topic.slug for r in self.parsed_files.values() if r.topic]
        unlisted = [slug for slug in pages if slug not in order]
        if len(missing_topics) == len(unlisted) == 1:
            return {missing_topics[0]: unlisted[0]}
        pairs = {slug: find_closest_word_or_empty(slug, unlisted) for slug in missing_topics}
        return {slug: closest for slug, closest in pairs.items() if closest}

    def sort_files_of_listed_topics_first(self) -> list[ParsedFile]:
        """Return the files, with those of topics that the syllabus does not list at the end.

        If two topics contain the same items, the listed one owns them and the other is
        a copy.
        """
        listed = set(self.syllabus.topics)
        return sorted(
            self.parsed_files.values(),
            key=lambda f: f.path.startswith("topics/") and f.path.split("/")[1] not in listed,
        )

    def list_item_id_claims(self) -> list[ItemIdClaim]:
        """Return every question and card with the path of its file, originals before copies."""
        files = self.sort_files_of_listed_topics_first()
        return [ItemIdClaim(f.path, fingerprint) for f in files for fingerprint in f.fingerprints]


def find_id_owners(
    parsed_course: ParsedCourse, ids_accepted_as_unchanged: Collection[str] = ()
) -> IdOwners:
    return assign_id_owners(
        parsed_course.list_item_id_claims(), parsed_course.parsed_files, ids_accepted_as_unchanged
    )


def map_new_option_keys_to_former_keys(
    lock_entry: LockEntry, fingerprint: ItemIdentityFingerprint
) -> dict[str, str]:
    """Map new option keys to the keys under which their responses were counted before.

    An option with unchanged text keeps its key. The others are paired in order.
    """
    if lock_entry.type != fingerprint.type:
        return {}
    remaining = list(lock_entry.options)
    new_keys: list[str] = []
    pairs: dict[str, str] = {}
    for key, digest in fingerprint.options:
        equal_option = next((o for o in remaining if o[1] == digest), None)
        if equal_option:
            remaining.remove(equal_option)
            pairs[key] = equal_option[0]
        else:
            new_keys.append(key)
    used_keys = {k for k, _ in fingerprint.options if k not in new_keys} | set(pairs.values())
    for key, (counted_key, _) in zip(new_keys, remaining, strict=False):
        if counted_key not in used_keys:
            pairs[key] = counted_key
    return {new: counted for new, counted in pairs.items() if new != counted}


# If the register of a kind cannot be read, its names are not reported as unknown.
_REGISTER_FILES_BY_KIND = {
    "objective": ("syllabus.toml",),
    "source": ("sources.toml", "shared/sources.toml"),
}


def check_cross_references(parsed_course: ParsedCourse) -> list[ContentProblem]:
    """Report E14, E86, E61, W95 and drawing problems: references to unknown names."""
    topic_files = (r for r in parsed_course.parsed_files.values() if r.topic or r.fingerprints)
    known_by_kind: dict[str, set[str]] = {
        "objective": parsed_course.list_objective_numbers(),
        "source": {s.key for r in parsed_course.parsed_files.values() for s in r.cited_sources},
        # One without a page is reported with its items.
        "topic": {r.path.split("/")[1] for r in topic_files},
    }
    unread = {
        kind
        for kind, files in _REGISTER_FILES_BY_KIND.items()
        if not parsed_course.is_any_file_present_and_none_unreadable(files)
    }
    hints: dict[tuple[str, str], str] = {}
    renamed = parsed_course.guess_new_slug_by_renamed_topic()
    problems: list[ContentProblem] = []
    for path, parsed_file in parsed_course.parsed_files.items():
        for reference in parsed_file.cross_references:
            if reference.kind in unread:
                continue
            if reference.kind not in known_by_kind:
                problems += _check_reference_outside_registers(path, reference, parsed_course)
            elif reference.target not in known_by_kind[reference.kind]:
                known_values = known_by_kind[reference.kind]
                hint = _build_moved_topic_hint(path, reference, renamed) or _suggest_known_name(
                    reference, known_values, hints
                )
                problems.append(_build_unknown_reference_problem(path, reference, hint))
    return problems


def _build_moved_topic_hint(
    path: str, reference: CrossReference, new_slug_by_renamed_topic: Mapping[str, str]
) -> str:
    new_slug = (
        new_slug_by_renamed_topic.get(reference.target, "") if reference.kind == "topic" else ""
    )
    if new_slug and path == "syllabus.toml":
        hint = f'If its folder is “{new_slug}” now, write "{new_slug}" in its place in order; '
        return f"{hint}else take the name out."
    return f"Did you mean “{new_slug}”?" if new_slug else ""


def _check_reference_outside_registers(
    path: str, reference: CrossReference, parsed_course: ParsedCourse
) -> Iterable[ContentProblem]:
    """Check dates, calculators, pictures, drawings, terms and links (E13, E61, W95 and others)."""
    if reference.kind == "day":
        # One day is allowed, for time zones.
        if dt.date.fromisoformat(reference.target) > parsed_course.checked_on + dt.timedelta(
            days=1
        ):
            message = f"“{reference.target}” lies in the future."
            hint = "Write the day on which the page was read last."
            yield make_reference_problem(path, reference, "E13", message, hint)
    elif reference.kind == "calculator":
        if not parsed_course.syllabus.offers_calculators:
            message = f"This needs the calculator “{reference.target}”, and the course has none."
            hint = "Take it out, or take calculators = false out of syllabus.toml."
            yield make_reference_problem(path, reference, "W95", message, hint)
    elif reference.kind == "file":
        yield from check_picture(path, reference, parsed_course.fault_by_picture)
    elif reference.kind in {"drawing", "picture"}:
        yield from check_drawing(path, reference, parsed_course.parsed_files)
    elif reference.kind == "term":
        yield from check_see_also_term(path, reference, parsed_course.parsed_files)
    else:
        yield from check_link_target(path, reference, parsed_course.parsed_files)


def _suggest_known_name(
    reference: CrossReference, known_names: set[str], hint_cache: dict[tuple[str, str], str]
) -> str:
    """Return the nearest known name. Searches only for the first `_MOST_HINTS` names."""
    hint_key = (reference.kind, reference.target)
    if hint_key not in hint_cache and len(hint_cache) < _MOST_HINTS:
        hint_cache[hint_key] = write_hint_for_unknown_word(reference.target, known_names)
    return hint_cache.get(hint_key, "")


def _build_unknown_reference_problem(
    path: str, reference: CrossReference, hint: str
) -> ContentProblem:
    code, expected = {
        "objective": ("E14", "an objective of syllabus.toml"),
        "source": ("E86", "a key of sources.toml"),
        "topic": ("E61", "a topic of this course"),
    }[reference.kind]
    if "," in reference.target:
        hint = f"Write several as a list: [{shorten_with_ellipsis(reference.target)}]."
    message = f"“{reference.target}” is not {expected}."
    return make_reference_problem(path, reference, code, message, hint)


def check_stale_reviews(parsed_course: ParsedCourse) -> list[ContentProblem]:
    """Report W18: pages and sources that were not reviewed for a year."""
    problems = []
    for path, parsed_file in parsed_course.parsed_files.items():
        topic = parsed_file.topic
        if topic and topic.reviewed and parsed_course.checked_on - topic.reviewed > _STALE_AFTER:
            message = f"The page was last reviewed on {topic.reviewed}."
            hint = "Read it again and write the date of today."
            problems.append(make_problem(ProblemLocation(path), "W18", message, hint))
        for source in parsed_file.cited_sources:
            if source.read_on and parsed_course.checked_on - source.read_on > _STALE_AFTER:
                message = f"The source “{source.key}” was last read on {source.read_on}."
                hint = "See whether it still says so, and write the date of today."
                line = parsed_file.line_by_register_entry.get(source.key, 1)
                problems.append(make_problem(ProblemLocation(path, line, 1), "W18", message, hint))
    return problems


def check_near_duplicate_stems(
    parsed_course: ParsedCourse, questions: Mapping[str, Question]
) -> list[ContentProblem]:
    """Report W72: two questions with nearly the same stem, numbers included."""
    claims = [
        claim
        for claim in parsed_course.list_item_id_claims()
        if claim.fingerprint.id in questions and claim.fingerprint.has_stem_words
    ]
    stems = {c.fingerprint.id: questions[c.fingerprint.id].stem.plain for c in claims}
    words_by_id = {
        item_id: frozenset(reduce_to_words(add_boundaries_in_unspaced_scripts(stem)).split())
        for item_id, stem in stems.items()
    }
    common = Counter(word for claim in claims for word in words_by_id[claim.fingerprint.id])
    problems = []
    ids_by_word: dict[str, list[str]] = defaultdict(list)
    for claim in claims:
        item_id = claim.fingerprint.id
        words = words_by_id[item_id]
        # Two stems that share nearly all words share at least one of their rarest.
        rarest = sorted(words, key=lambda word: (common[word], word))
        rarest = rarest[: len(words) - math.ceil(_SAME_STEM_SHARE * len(words)) + 1]
        candidates = (other for word in rarest for other in ids_by_word[word])
        for other in itertools.islice(candidates, _MOST_COMPARED):
            if other != item_id and _have_nearly_same_stem(words, words_by_id[other]):
                place = questions[other].place
                message = f"The stem nearly repeats “{other}” in {place.path}:{place.line}."
                hint = "Ask something else, or delete one."
                problems.append(make_problem(claim.location, "W72", message, hint, item_id))
                break
        for word in rarest:
            ids_by_word[word].append(item_id)
    return problems


def _have_nearly_same_stem(words: frozenset[str], other_words: frozenset[str]) -> bool:
    """Return whether two stems share nearly all words, and all numbers and short words."""
    different = words ^ other_words
    if len(different) > (1 - _SAME_STEM_SHARE) * len(words | other_words):
        return False
    return not any(len(w) < 3 or any(c.isdigit() for c in w) for w in different)


def check_topic_order_titles_and_prerequisites(
    parsed_course: ParsedCourse, pages: Mapping[str, Topic]
) -> list[ContentProblem]:
    """Report W36, W37, E39, E03, E11: order, titles, cycles and former slugs of topics."""
    return [
        *_check_topic_order(parsed_course, pages),
        *_check_duplicate_titles(pages),
        *_check_aliases(pages),
        *(p for slug in pages for p in _check_prerequisite_cycle(slug, pages, parsed_course)),
    ]


def _check_topic_order(
    parsed_course: ParsedCourse, pages: Mapping[str, Topic]
) -> Iterator[ContentProblem]:
    register = parsed_course.parsed_files.get("syllabus.toml")
    order = parsed_course.syllabus.topics
    if register is None or not order:
        return
    lines = {m.target: (m.line, m.column) for m in register.cross_references}
    for topic, count in Counter(order).items():
        if count > 1:
            message = f"“{topic}” stands {count} times in the order."
            location = ProblemLocation("syllabus.toml", *lines.get(topic, (1, 1)))
            yield make_problem(location, "W36", message, "Keep one of them.")
    # These are reported elsewhere, with the hint to update the order.
    renamed_topics = set(parsed_course.guess_new_slug_by_renamed_topic().values())
    for topic in pages:
        if topic not in {*order, *renamed_topics} and pages[topic].status == "live":
            message = f"The topic “{topic}” is not in the order of the syllabus."
            hint = f'Write "{topic}" into order; until then it stands at the end.'
            yield make_problem(ProblemLocation(pages[topic].place.path), "W36", message, hint)


def _check_aliases(pages: Mapping[str, Topic]) -> Iterator[ContentProblem]:
    """Report E03, E11: a former slug that is malformed, or is the slug of another topic."""
    owners = {slug: slug for slug in pages}
    for page in pages.values():
        for alias in page.aliases:
            location = ProblemLocation(page.place.path)
            if not is_slug(alias):
                hint = "Write the former name of the folder."
                yield make_problem(location, "E03", f"“{alias}” is not a slug.", hint)
            elif owners.setdefault(alias, page.slug) != page.slug or alias in pages:
                message = f"The alias “{alias}” leads to the topic “{owners[alias]}” already."
                yield make_problem(location, "E11", message, "Take it out of “aliases”.")


def _check_duplicate_titles(pages: Mapping[str, Topic]) -> Iterator[ContentProblem]:
    first: dict[str, Topic] = {}
    for page in pages.values():
        first_page = first.setdefault(reduce_to_words(page.title), page)
        if first_page is not page:
            message = f"“{page.title}” is the title of {first_page.place.path} as well."
            hint = "Give one of them another: lists show nothing but the title."
            yield make_problem(ProblemLocation(page.place.path), "W37", message, hint)


def _check_prerequisite_cycle(
    slug: str, pages: Mapping[str, Topic], parsed_course: ParsedCourse
) -> Iterator[ContentProblem]:
    """Report E39: a topic that requires itself, directly or through others."""
    page = pages[slug]
    references = parsed_course.parsed_files[page.place.path].cross_references
    for required in page.requires:
        path = _find_prerequisite_path(required, slug, pages)
        if not path:
            continue
        reference = next((r for r in references if r.target == required), None)
        position = (reference.line, reference.column) if reference else (1, 1)
        location = ProblemLocation(page.place.path, *position)
        detour = " → ".join((slug, *path))
        message = f"“{slug}” is to be read before itself: {detour}."
        hint = "Take one of these requirements away."
        yield make_problem(location, "E39", message, hint)


def _find_prerequisite_path(start: str, end: str, pages: Mapping[str, Topic]) -> tuple[str, ...]:
    """Return the shortest path between two topics along their requirements."""
    paths: list[tuple[str, ...]] = [(start,)]
    seen = {start}
    while paths:
        path = paths.pop(0)
        if path[-1] == end:
            return path
        for required in pages[path[-1]].requires if path[-1] in pages else ():
            if required not in seen:
                seen.add(required)
                paths.append((*path, required))
    return ()


def check_links_to_drafts(
    parsed_course: ParsedCourse, pages: Mapping[str, Topic]
) -> Iterator[ContentProblem]:
    """Report E61: links from live pages to pages that are not live."""
    hidden = {slug: p.status for slug, p in pages.items() if p.status != "live"}
    for page in pages.values():
        for reference in (
            parsed_course.parsed_files[page.place.path].cross_references if hidden else ()
        ):
            slug = reference.target.removeprefix("/concepts/").partition("#")[0]
            leads_to_hidden = reference.kind in {"page", "topic"} and slug in hidden
            if leads_to_hidden and page.status == "live":
                message = f"“{slug}” is no live page (status: {hidden[slug]})."
                hint = "Make it live, or leave the link out until it is."
                location = ProblemLocation(page.place.path, reference.line, reference.column)
                yield make_problem(location, "E61", message, hint)


def check_duplicate_card_fronts(cards: Mapping[str, Flashcard]) -> Iterable[ContentProblem]:
    """Report W35: two cards with the same front. Reverse cards are exempt."""
    first: dict[str, Flashcard] = {}
    for card in cards.values():
        if card.is_reverse:
            continue
        front = reduce_to_words(card.front.plain)
        first_card = first.setdefault(front, card)
        if front and first_card is not card:
            other_location = f"{first_card.place.path}:{first_card.place.line}"
            message = f"The card asks the same as “{first_card.id}” in {other_location}."
            location = ProblemLocation(card.place.path, card.place.line)
            yield make_problem(location, "W35", message, "Ask for something else.", card.id)


_MAX_NAMED_DRAFTS = 3  # drafts that are named in a message


def check_exam_and_objective_coverage(
    parsed_course: ParsedCourse, questions: Iterable[Question], cards: Iterable[Flashcard]
) -> list[ContentProblem]:
    """Report exams that cannot be filled and objectives without items.

    `questions` and `cards` include drafts, which do not count but are mentioned.
    """
    question_list = list(questions)
    pages = [r.topic for r in parsed_course.parsed_files.values() if r.topic]
    cards_to_learn = [c for c in cards if not c.is_reverse]
    return [
        *_check_blueprints(parsed_course, question_list),
        *_check_objective_coverage(parsed_course, pages, question_list, cards_to_learn),
    ]


def build_drafts_hint(draft_labels: Sequence[str]) -> str:
    """Return the hint to finish drafts. `draft_labels` describes them."""
    shown_labels = ", ".join(draft_labels[:_MAX_NAMED_DRAFTS])
    more = (
        f" and {len(draft_labels) - _MAX_NAMED_DRAFTS} more"
        if len(draft_labels) > _MAX_NAMED_DRAFTS
        else ""
    )
    return (
        f"Drafts would count: {shown_labels}{more}. Write their text, then delete the line “status: draft”: "
        "that of concept.md is for its whole topic."
    )


def _check_objective_coverage(
    parsed_course: ParsedCourse,
    pages: Sequence[Topic],
    questions: Sequence[Question],
    cards: Sequence[Flashcard],
) -> Iterable[ContentProblem]:
    """Report W73: objectives without a live page, live questions or live cards."""
    register = parsed_course.parsed_files.get("syllabus.toml")
    lines = register.line_by_register_entry if register else {}
    kinds: dict[str, Sequence[Topic | Question | Flashcard]]
    kinds = {"page": pages, "questions": questions, "cards": cards}
    for number in sorted(parsed_course.list_objective_numbers()):
        items_by_kind = {n: [i for i in kinds[n] if number in i.objectives] for n in kinds}
        missing_kinds = [n for n in kinds if all(i.status != "live" for i in items_by_kind[n])]
        if not missing_kinds:
            continue
        message = f"Objective {number} has no {' and no '.join(missing_kinds)}"
        files = [item.place.path for name in missing_kinds for item in items_by_kind[name]]
        drafts = [*dict.fromkeys(files)]
        hint = "Write a topic for it, or add its number to one that is live."
        if drafts:
            message += " that learners see"
            hint = build_drafts_hint(drafts)
            kinds_without_draft = [name for name in missing_kinds if not items_by_kind[name]]
            if kinds_without_draft:
                hint += f" Beside it, write {' and '.join(kinds_without_draft)}."
        location = ProblemLocation("syllabus.toml", lines.get(number, 1))
        yield make_problem(location, "W73", f"{message}.", hint)


def _check_blueprints(
    parsed_course: ParsedCourse, questions: Iterable[Question]
) -> Iterable[ContentProblem]:
    """Report E70, E71: exams that use unknown domains or need more questions than exist."""
    domain_of = {o.number: o.domain for d in parsed_course.syllabus.domains for o in d.objectives}
    exam_questions = [(q.find_domain(domain_of), q) for q in questions if q.may_be_asked_in_exams]
    live_counts = Counter(domain for domain, q in exam_questions if q.status == "live")
    excluded_counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for question in questions:
        if question.status == "live" and not question.may_be_asked_in_exams:
            excluded_counts[question.find_domain(domain_of)][
                _name_group_excluded_from_exams(question)
            ] += 1
    drafts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for domain, question in exam_questions:
        if question.status != "live":
            drafts[domain][question.place.path] += 1
    domains = {d.number for d in parsed_course.syllabus.domains}
    for path, parsed_file in parsed_course.parsed_files.items():
        lines = parsed_file.line_by_register_entry
        for number, needed in (
            parsed_file.exam.question_count_by_domain.items() if parsed_file.exam else ()
        ):
            location = ProblemLocation(path, lines.get(number, 1))
            if number not in domains:
                message = f"“{number}” is not a domain of syllabus.toml."
                hint = write_hint_for_unknown_word(number, domains)
                if number in domain_of:
                    message = f"Exams count by domain, and “{number}” is an objective."
                    hint = f"Write {domain_of[number]} = {needed}"
                yield make_problem(location, "E70", message, hint)
            elif live_counts[number] < needed:
                message = f"The exam asks {needed} questions of domain {number}, "
                message += f"the course has {live_counts[number]}"
                message += " that are live." if drafts[number] else " for exams."
                lacking = needed - live_counts[number]
                hint = _build_domain_shortage_hint(lacking, drafts[number], excluded_counts[number])
                yield make_problem(location, "E71", message, hint)


def _name_group_excluded_from_exams(question: Question) -> str:
    if not types.question_type_of(question).is_allowed_in_exams:
        return "designs" if question.type == "design" else "labs"
    return "“level: deeper”" if question.level == "deeper" else "choices between two options"


def _build_domain_shortage_hint(
    lacking_count: int, draft_count_by_file: Counter[str], excluded_count_by_reason: Counter[str]
) -> str:
    """Return how to get the questions that an exam lacks, with `draft_count_by_file` counted by file.

    `excluded_count_by_reason` counts the live questions that exams never draw, by the reason.
    """
    if not draft_count_by_file:
        reasons = ", ".join(
            f"{reason} ({count})" for reason, count in excluded_count_by_reason.items()
        )
        hint = "Write more questions, or ask fewer."
        return f"{hint} Exams never draw {reasons}." if reasons else hint
    hint = build_drafts_hint([f"{count} of {path}" for path, count in draft_count_by_file.items()])
    remaining = lacking_count - draft_count_by_file.total()
    return f"{hint} Write {remaining} more beside them, or ask fewer." if remaining > 0 else hint


_LEAST_QUESTIONS = 5


def check_topic_completeness(
    topics: Mapping[str, Topic],
    parsed_files: Mapping[str, ParsedFile],
    questions: Mapping[str, Question],
    cards: Mapping[str, Flashcard],
) -> list[ContentProblem]:
    """Report W38, W87, W94: incomplete topics, e.g. without exam box, cards or five questions.

    `questions` and `cards` include drafts, which are mentioned but not counted.
    """
    problems: list[ContentProblem] = []
    for topic in topics.values():
        page_file = parsed_files[topic.place.path]
        problems += _check_missing_front_matter_keys(topic)
        missing = []
        alert_kinds = [alert.kind for alert in page_file.alert_lines]
        if "IMPORTANT" not in alert_kinds:
            missing.append("exam box ([!IMPORTANT])")
        if "TIP" not in alert_kinds:
            missing.append("memory hook ([!TIP])")
        forward_cards = (c for c in cards.values() if not c.is_reverse)
        drafts = [] if topic.cards else _describe_topic_drafts_by_file(topic, forward_cards, "card")
        if not topic.cards and not drafts:
            missing.append("cards")
        if missing:
            message = f"“{topic.title}” has no {', no '.join(missing)}."
            problems.append(_build_incomplete_topic_problem(topic, message))
        if drafts:
            message = f"“{topic.title}” has no cards that are live."
            problems.append(_build_incomplete_topic_problem(topic, message, drafts))
        problems += _check_at_most_one_tip_alert(topic, page_file)
        problems += _check_too_few_questions(topic, parsed_files, questions.values())
        problems += _check_folder_name_is_slug(topic)
    return problems


def _check_at_most_one_tip_alert(topic: Topic, parsed_file: ParsedFile) -> Iterator[ContentProblem]:
    hooks = [alert.line for alert in parsed_file.alert_lines if alert.kind == "TIP"]
    if len(hooks) > 1:
        message = f"“{topic.title}” has {len(hooks)} memory hooks ([!TIP])."
        hint = f"Keep it or the one on line {hooks[0]}; the other can be a [!NOTE]."
        yield make_problem(
            ProblemLocation(topic.place.path, hooks[1]), "W87", message, hint, is_consequence=True
        )


def _check_too_few_questions(
    topic: Topic, parsed_files: Mapping[str, ParsedFile], questions: Iterable[Question]
) -> Iterator[ContentProblem]:
    count = len(topic.questions)
    if count >= _LEAST_QUESTIONS:
        return
    drafts = _describe_topic_drafts_by_file(topic, questions, "question")
    live = f" that {'is' if count == 1 else 'are'} live" if drafts else ""
    count_text = f"{count} question{'s' * (count != 1)}"
    message = f"“{topic.title}” has {count_text}{live}, not five."
    if f"topics/{topic.slug}/quiz.md" not in parsed_files:
        page_count_text = f"{count or 'no'} question{'s' * (count != 1)} on its page"
        message = f"“{topic.title}” has no quiz.md, and {page_count_text}."
    yield _build_incomplete_topic_problem(topic, message, drafts)


def _describe_topic_drafts_by_file(
    topic: Topic, items: Iterable[Question | Flashcard], noun: str
) -> list[str]:
    """Describe the topic's items that are not live, by file."""
    topic_drafts = [i for i in items if i.topic == topic.slug and i.status != "live"]
    return [
        f"{count} {noun}{'s' * (count != 1)} of {path}"
        for path, count in Counter(i.place.path for i in topic_drafts).items()
    ]


def _check_folder_name_is_slug(topic: Topic) -> Iterator[ContentProblem]:
    if not is_slug(topic.slug):
        message = f"The folder “{topic.slug}” makes a poor address."
        hint = "Rename it in lower-case letters, digits and hyphens"
        hint += f": {slugify(topic.slug)}." if slugify(topic.slug) else "."
        yield make_problem(ProblemLocation(f"topics/{topic.slug}"), "W94", message, hint)


def _check_missing_front_matter_keys(topic: Topic) -> Iterator[ContentProblem]:
    for name, value in (("summary", topic.summary), ("reviewed", topic.reviewed)):
        if not value:
            message = f"The page has no “{name}” in its front matter."
            hint = f"Write a line “{name}: …”."
            yield make_problem(
                ProblemLocation(topic.place.path), "W38", message, hint, is_consequence=True
            )


def _build_incomplete_topic_problem(
    topic: Topic, message: str, draft_labels: Sequence[str] = ()
) -> ContentProblem:
    hint = build_drafts_hint(draft_labels) if draft_labels else "Add what is missing."
    return make_problem(
        ProblemLocation(topic.place.path), "W87", message, hint, is_consequence=True
    )


# Hash of an empty key. Older versions stored it for true-false, match, order and design
# questions, whatever their key was. It does not tell what was reviewed, so the next
# `--fix` replaces it without asking for a review. A card without figures always has
# this key; adding a figure to its back is a change like any other.
_NO_KEY = content_hash("")[:6]


def check_answer_keys_changed_since_review(
    parsed_files: Mapping[str, ParsedFile], today: dt.date
) -> Iterator[ContentProblem]:
    """Report W19: the key of an item changed since its last review."""
    entries = map_lock_entries_by_id(parsed_files)
    for path, parsed_file in parsed_files.items():
        page = find_page_path_of_item_file(path)
        reviewed = find_review_date_of_item_page(path, parsed_files)
        for fingerprint in parsed_file.fingerprints:
            entry = entries.get(fingerprint.id)
            if not entry or not reviewed:
                continue
            if is_answer_key_changed_since_review(entry, fingerprint, reviewed, today):
                message = f"What is right in “{fingerprint.id}” changed after {entry.reviewed_on}."
                hint = "Read it against its sources, write the date of today behind "
                hint += f"“reviewed:” in {page}, and run the check with --fix."
                location = ProblemLocation(path, fingerprint.line, fingerprint.column)
                yield make_problem(location, "W19", message, hint, fingerprint.id)


def find_page_path_of_item_file(path: str) -> str:
    """Return the path of the page whose review date covers all items of its folder."""
    return f"{path.rpartition('/')[0]}/concept.md"


def find_review_date_of_item_page(
    path: str, parsed_files: Mapping[str, ParsedFile]
) -> dt.date | None:
    """Return the date on which the page of an item's topic was last reviewed."""
    page = parsed_files.get(find_page_path_of_item_file(path))
    return page.topic.reviewed if page and page.topic else None


def is_answer_key_changed_since_review(
    lock_entry: LockEntry,
    fingerprint: ItemIdentityFingerprint,
    reviewed_on: dt.date,
    today: dt.date,
) -> bool:
    """Return whether the key changed after the last review.

    A review dated today counts as newer than the change.
    """
    if (
        not lock_entry.reviewed_key_hash
        or lock_entry.retired_on
        or fingerprint.is_broken
        or lock_entry.type != fingerprint.type
    ):
        return False
    if lock_entry.reviewed_key_hash == _NO_KEY and fingerprint.type != "card":
        return False
    return (
        lock_entry.reviewed_key_hash != fingerprint.answer_key_hash
        and reviewed_on.isoformat() <= lock_entry.reviewed_on
        and reviewed_on < today
    )
