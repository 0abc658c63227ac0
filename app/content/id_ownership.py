"""Decides which item owns an id, by ids.lock and similarity. Unclear cases are reported."""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from app.content.parsed_file import (
    ItemIdentityFingerprint,
    LockEntry,
    ParsedFile,
    map_lock_entries_by_id,
)
from app.markup.problems import (
    ContentProblem,
    ProblemLocation,
    UnidentifiedItem,
    make_problem,
    topic_slug_of_path,
)
from app.markup.text import estimate_jaccard_similarity

LOCK_FILE_NAME = "ids.lock"
COPY_SIMILARITY = 0.6  # similarity from which an item counts as the same in other words
CLEAR_MARGIN = 0.5  # required lead of the most similar item over the next
_REPLACED_BELOW_SIMILARITY = 0.3  # similarity below which an item counts as replaced
_SLIGHT_MARGIN = 0.2  # difference of two sketches that may be chance
# Lines of ids.lock with the same heading or body up to which the match is significant.
_MAX_EQUAL_LINES = 5
_MAX_LINES_OF_RARE_WORD = 100  # lines of ids.lock up to which a sampled word counts as rare
_MOST_COMPARED = 20  # lines compared with one item
# A file with one of these errors was not read to the end. Do not report its missing
# items as deleted.
_CODES_THAT_HIDE_ITEMS = frozenset({"E00", "E01", "E02", "E03", "E10", "E11", "E12", "E75", "E88"})


class ItemTextHashes(Protocol):
    """The hashed words of an item; see `ItemIdentityFingerprint` and `UnidentifiedItem`."""

    @property
    def sketch(self) -> tuple[int, ...]: ...
    @property
    def sketch_with_comment(self) -> tuple[int, ...]: ...
    @property
    def heading_hash(self) -> str: ...
    @property
    def body_hash(self) -> str: ...


@dataclasses.dataclass(frozen=True, slots=True)
class ItemIdClaim:
    """A question or card that has an id, with the path of its file."""

    path: str
    fingerprint: ItemIdentityFingerprint

    @property
    def location(self) -> ProblemLocation:
        return ProblemLocation(self.path, self.fingerprint.line, self.fingerprint.column)

    @property
    def path_and_line(self) -> str:
        return f"{self.path}:{self.fingerprint.line}"


class IdEvidence:
    """Data from the course and its ids.lock for deciding who had an id first."""

    def __init__(
        self, claims: Mapping[str, list[ItemIdClaim]], parsed_files: Mapping[str, ParsedFile]
    ) -> None:
        lock = parsed_files.get(LOCK_FILE_NAME)
        self.claims = claims
        self.parsed_files = parsed_files
        self.entries = map_lock_entries_by_id(parsed_files)
        self.has_lock = lock is not None and not lock.problems
        file_problems = (p for r in parsed_files.values() for p in r.problems if not p.item)
        self.is_fully_parsed = not any(p.code in _CODES_THAT_HIDE_ITEMS for p in file_problems)
        self.broken_comment_places: dict[str, str] = {}
        for path, parsed_file in parsed_files.items():
            for broken_id in parsed_file.broken_comment_ids:
                self.broken_comment_places.setdefault(broken_id.id, f"{path}:{broken_id.line}")
        self.missing_entries = {
            name: entry
            for name, entry in self.entries.items()
            if not (entry.retired_on or name in claims or name in self.broken_comment_places)
        }
        self.ids_found_elsewhere: set[str] = set()  # of the missing ones
        self._entries_by_text_hash: dict[str, list[LockEntry]] = defaultdict(list)
        for entry in self.entries.values():
            if entry.heading_hash:
                self._entries_by_text_hash[f"#{entry.heading_hash}"].append(entry)
            if entry.body_hash:
                self._entries_by_text_hash[entry.body_hash].append(entry)
        self._ids_by_sample: dict[int, list[str]] = defaultdict(list)
        for entry in self.entries.values():
            for number in entry.sketch:
                self._ids_by_sample[number].append(entry.id)

    def is_topic_of_file_in_syllabus(self, path: str) -> bool:
        parsed_file = self.parsed_files.get("syllabus.toml")
        topics = parsed_file.syllabus.topics if parsed_file and parsed_file.syllabus else ()
        return topic_slug_of_path(path) in topics

    def score_entry_resemblance(self, entry: LockEntry, wording: ItemTextHashes) -> float:
        """Return how similar an item is to a line of ids.lock, from 0 to 3."""
        equal_parts = (
            entry.heading_hash == wording.heading_hash != "",
            entry.body_hash == wording.body_hash != "",
        )
        return _compute_similarity_to_entry(entry, wording) + sum(equal_parts)

    def is_text_replaced(self, entry: LockEntry, wording: ItemTextHashes) -> bool:
        """Return whether an item's text is quite different from its line."""
        if entry in self._find_entries_sharing_heading_or_body(wording):
            return False
        return (
            bool(entry.sketch)
            and _compute_similarity_to_entry(entry, wording) < _REPLACED_BELOW_SIMILARITY
        )

    def find_closer_entry(self, own_entry: LockEntry, wording: ItemTextHashes) -> LockEntry | None:
        """Return another line that an item clearly resembles more than its own; else None."""
        if (own_entry.heading_hash, own_entry.body_hash) == (
            wording.heading_hash,
            wording.body_hash,
        ):
            return None
        own_similarity = _compute_similarity_to_entry(own_entry, wording)
        candidates = self._find_similar_entries_sharing_heading_or_body(wording)
        if own_similarity < COPY_SIMILARITY:
            candidates += self._find_similar_entries(wording, self.entries)
        best = self._find_nearest_entry([e for e in candidates if e.id != own_entry.id], wording)
        if best is None:
            return None
        # The same heading is stronger evidence than the same answers, such as True and
        # False.
        margin = _SLIGHT_MARGIN if best.heading_hash == wording.heading_hash else 0.0
        threshold = own_similarity - margin
        if _compute_similarity_to_entry(best, wording) <= threshold:
            return None
        lead = self.score_entry_resemblance(best, wording)
        lead -= self.score_entry_resemblance(own_entry, wording)
        return best if lead >= CLEAR_MARGIN else None

    def find_similar_missing_entry(
        self, wording: ItemTextHashes, candidate_ids: Collection[str] = ()
    ) -> LockEntry | None:
        """Return the line of a missing id whose item this seems to be; else None."""
        missing = self.missing_entries
        entries = [missing[name] for name in candidate_ids if name in missing]
        if not entries:
            sharing = self._find_similar_entries_sharing_heading_or_body(wording)
            entries = [entry for entry in sharing if entry.id in missing]
            entries += self._find_similar_entries(wording, missing)
        return self._find_nearest_entry(entries, wording)

    def find_nearest_missing_entry(self, wording: ItemTextHashes) -> LockEntry | None:
        """Return the line of a missing id that the item resembles most."""
        return self._find_nearest_entry([*self.missing_entries.values()], wording)

    def _find_nearest_entry(
        self, entries: Sequence[LockEntry], wording: ItemTextHashes
    ) -> LockEntry | None:
        return max(entries, key=lambda e: self.score_entry_resemblance(e, wording), default=None)

    def _find_entries_sharing_heading_or_body(self, wording: ItemTextHashes) -> list[LockEntry]:
        """Return the lines with the same heading or body, if there are only a few."""
        entries = []
        for text in (f"#{wording.heading_hash}", wording.body_hash):
            equal_entries = self._entries_by_text_hash.get(text, [])
            entries += equal_entries if len(equal_entries) <= _MAX_EQUAL_LINES else []
        return entries

    def _find_similar_entries_sharing_heading_or_body(
        self, wording: ItemTextHashes
    ) -> list[LockEntry]:
        """Return the lines with the same heading or body whose text is not entirely different."""
        sharing_entries = self._find_entries_sharing_heading_or_body(wording)
        return [
            e
            for e in sharing_entries
            if _compute_similarity_to_entry(e, wording) >= _REPLACED_BELOW_SIMILARITY
        ]

    def _find_similar_entries(
        self, wording: ItemTextHashes, candidates: Mapping[str, LockEntry]
    ) -> list[LockEntry]:
        """Return the lines with similar text, comparing only a few candidates."""
        sampled = {*wording.sketch, *wording.sketch_with_comment}
        rare = (self._ids_by_sample.get(number, ()) for number in sampled)
        shared_counts = Counter(
            name for names in rare if len(names) <= _MAX_LINES_OF_RARE_WORD for name in names
        )
        ids = [name for name, _ in shared_counts.most_common() if name in candidates]
        most_shared = [candidates[name] for name in ids[:_MOST_COMPARED]]
        return [
            e for e in most_shared if _compute_similarity_to_entry(e, wording) >= COPY_SIMILARITY
        ]


def _compute_similarity_to_entry(entry: LockEntry, wording: ItemTextHashes) -> float:
    """Return the similarity of an item to a line of ids.lock, from 0 to 1."""
    similarity = estimate_jaccard_similarity(entry.sketch, wording.sketch)
    if entry.heading_hash or entry.body_hash:
        return similarity
    # The sketch of an older line includes the comment.
    return max(similarity, estimate_jaccard_similarity(entry.sketch, wording.sketch_with_comment))


_OWN_ID = "write q: alone in its comment, and run the check with --fix"


@dataclasses.dataclass(slots=True)
class IdOwners:
    """The owner of each id, and all problems with ids.

    `--fix` may give new ids to `copied_claims` and `unidentified_items`. It does not change
    the `doubtful_ids` in files or ids.lock.
    """

    owner_claim_by_id: dict[str, ItemIdClaim] = dataclasses.field(default_factory=dict)
    problems: list[ContentProblem] = dataclasses.field(default_factory=list)
    copied_claims: list[ItemIdClaim] = dataclasses.field(default_factory=list)
    unidentified_items: list[tuple[str, UnidentifiedItem]] = dataclasses.field(default_factory=list)
    doubtful_ids: set[str] = dataclasses.field(default_factory=set)

    def report_problem(self, claim: ItemIdClaim, code: str, message: str, hint: str) -> None:
        problem = make_problem(claim.location, code, message, hint, claim.fingerprint.id)
        self.problems.append(problem)


def assign_id_owners(
    claims: Iterable[ItemIdClaim],
    parsed_files: Mapping[str, ParsedFile],
    ids_accepted_as_unchanged: Collection[str] = (),
) -> IdOwners:
    """Determine the owner of each id in a course.

    `ids_accepted_as_unchanged` are ids whose items count as unchanged, even if their text differs.
    """
    claims_by_id: dict[str, list[ItemIdClaim]] = defaultdict(list)
    for claim in claims:
        claims_by_id[claim.fingerprint.id].append(claim)
    evidence = IdEvidence(claims_by_id, parsed_files)
    owners = IdOwners()
    for item_id, claimed in claims_by_id.items():
        if item_id in evidence.broken_comment_places:
            _report_id_in_broken_comment(claimed, evidence, owners)
        elif item_id not in evidence.entries:
            _assign_owner_of_unlocked_id(claimed, evidence, owners)
        elif item_id in ids_accepted_as_unchanged and len(claimed) == 1:
            owners.owner_claim_by_id[item_id] = claimed[0]
        else:
            _assign_locked_id_owner(evidence.entries[item_id], claimed, evidence, owners)
    _collect_items_without_id(evidence, owners)
    _report_missing_ids(evidence, owners)
    return owners


def _report_id_in_broken_comment(
    rival_claims: list[ItemIdClaim], evidence: IdEvidence, owners: IdOwners
) -> None:
    """Report E04: the id also appears in a broken comment, which may be its owner's."""
    item_id = rival_claims[0].fingerprint.id
    owners.doubtful_ids.add(item_id)
    for claim in rival_claims:
        broken_place = evidence.broken_comment_places[item_id]
        message = f"“{item_id}” stands in {broken_place} as well, in a comment that is broken."
        hint = f"Mend that comment first; or, if this is the newer one, {_OWN_ID}."
        owners.report_problem(claim, "E04", message, hint)


def _assign_owner_of_unlocked_id(
    rival_claims: list[ItemIdClaim], evidence: IdEvidence, owners: IdOwners
) -> None:
    """Settle an id that is not in ids.lock."""
    owner, item_id = (
        _find_original_owner(None, rival_claims, evidence),
        rival_claims[0].fingerprint.id,
    )
    if owner is None:
        _report_ambiguity_serving_first_if_equal(rival_claims, "ids.lock does not know it", owners)
        return
    owners.owner_claim_by_id[item_id] = owner
    for claim in rival_claims:
        if claim is not owner:
            _report_copy_or_other_item(claim, owner, evidence, owners)
    if missing_id := evidence.find_similar_missing_entry(owner.fingerprint):
        owners.doubtful_ids.add(item_id)
        _report_relocated_id(missing_id, owner.location, f" as “{item_id}”", evidence, owners)
    elif evidence.has_lock and not owner.fingerprint.is_broken:
        message = f"“{item_id}” is not in ids.lock yet, so that nothing guards it."
        hint = "Run the check with --fix, and commit ids.lock."
        owners.report_problem(owner, "W97", message, hint)


def _report_ambiguity_serving_first_if_equal(
    rival_claims: list[ItemIdClaim], reason: str, owners: IdOwners
) -> None:
    """Report E04 for several items with the same id, if the original is unknown.

    If all have the same text, the first is served.
    """
    item_id = rival_claims[0].fingerprint.id
    owners.doubtful_ids.add(item_id)
    reported_claims = rival_claims
    if _have_all_same_text(rival_claims):
        owners.owner_claim_by_id[item_id], *reported_claims = rival_claims
    for claim in reported_claims:
        other_claim = next(c for c in rival_claims if c is not claim)
        message = f"“{item_id}” is the id of the item in {other_claim.path_and_line} as well, and {reason}."
        hint = f"If this is the newer one, {_OWN_ID}."
        owners.report_problem(claim, "E04", message, hint)


def _have_all_same_text(rival_claims: list[ItemIdClaim]) -> bool:
    return len({(c.fingerprint.heading_hash, c.fingerprint.body_hash) for c in rival_claims}) == 1


def _assign_locked_id_owner(
    entry: LockEntry, rival_claims: list[ItemIdClaim], evidence: IdEvidence, owners: IdOwners
) -> None:
    """Settle an id of ids.lock: find its owner, copies, and other items that use it."""
    if entry.retired_on:
        owners.doubtful_ids.add(entry.id)
        for claim in rival_claims:
            message = f"“{entry.id}” was retired on {entry.retired_on}."
            hint = "Use a new id: answers to the old item would count for this one."
            owners.report_problem(claim, "E05", message, hint)
        return
    rivals = {c.location: evidence.find_closer_entry(entry, c.fingerprint) for c in rival_claims}
    for claim in rival_claims:
        if rival := rivals[claim.location]:
            _report_text_of_other_id(entry, claim, rival, evidence, owners)
    remaining_claims = [claim for claim in rival_claims if rivals[claim.location] is None]
    owner = _find_original_owner(entry, remaining_claims, evidence)
    if owner is None:
        owners.doubtful_ids.add(entry.id)
        if remaining_claims:
            reason = "ids.lock does not tell which of them had it first"
            _report_ambiguity_serving_first_if_equal(remaining_claims, reason, owners)
        return
    owners.owner_claim_by_id[entry.id] = owner
    for claim in remaining_claims:
        if claim is not owner:
            _report_copy_or_other_item(claim, owner, evidence, owners)
    _report_differences_from_lock(entry, owner, evidence, owners)


def _report_text_of_other_id(
    entry: LockEntry,
    claim: ItemIdClaim,
    other_entry: LockEntry,
    evidence: IdEvidence,
    owners: IdOwners,
) -> None:
    """Report E07: the text is that of another id."""
    owners.doubtful_ids.add(entry.id)
    evidence.ids_found_elsewhere.add(other_entry.id)
    message = f"“{entry.id}” stands here with the words of “{other_entry.id}”."
    hint = f"Write q: {other_entry.id}"
    if other_entry.id in evidence.claims:
        hint = f"Give it an id of its own: {_OWN_ID}"
    accept = f"run the check with --fix --accept {entry.id}"
    hint += f"; or, if it is “{entry.id}” all the same, {accept}."
    owners.report_problem(claim, "E07", message, hint)


def _find_original_owner(
    entry: LockEntry | None, rival_claims: list[ItemIdClaim], evidence: IdEvidence
) -> ItemIdClaim | None:
    """Return the item that had the id first, if the evidence is unambiguous; else None.

    That is the item most similar to ids.lock; of several, the one in the file recorded
    there; of items with the same text, the one in a topic that the syllabus lists.
    """
    if len(rival_claims) < 2:
        return rival_claims[0] if rival_claims else None
    best_claims = _find_nearest_claims(entry, rival_claims, evidence) if entry else rival_claims
    claims_in_same_file = [c for c in rival_claims if entry is not None and c.path == entry.path]
    if claims_in_same_file:
        best_claims_in_same_file = [claim for claim in best_claims if claim in claims_in_same_file]
        return best_claims_in_same_file[0] if len(best_claims_in_same_file) == 1 else None
    if len(best_claims) > 1 and _have_all_same_text(best_claims):
        best_claims = [
            claim for claim in best_claims if evidence.is_topic_of_file_in_syllabus(claim.path)
        ]
    return best_claims[0] if len(best_claims) == 1 else None


def _find_nearest_claims(
    entry: LockEntry, rival_claims: list[ItemIdClaim], evidence: IdEvidence
) -> list[ItemIdClaim]:
    """Return the items that are most similar to a line of ids.lock."""
    similar_claims = [
        c for c in rival_claims if not evidence.is_text_replaced(entry, c.fingerprint)
    ]
    scores = [evidence.score_entry_resemblance(entry, c.fingerprint) for c in similar_claims]
    best = max(scores, default=0.0)
    scored_claims = zip(similar_claims, scores, strict=True)
    return [claim for claim, score in scored_claims if best - score < CLEAR_MARGIN]


def _report_copy_or_other_item(
    claim: ItemIdClaim, owner: ItemIdClaim, evidence: IdEvidence, owners: IdOwners
) -> None:
    """Report E08 for a copy of an item, or E04 for a different item with its id."""
    item_id, missing_entry = (
        claim.fingerprint.id,
        evidence.find_similar_missing_entry(claim.fingerprint),
    )
    if (
        estimate_jaccard_similarity(owner.fingerprint.sketch, claim.fingerprint.sketch)
        < COPY_SIMILARITY
    ):
        message = f"“{item_id}” is the id of the item in {owner.path_and_line}, by ids.lock."
        hint = f"Give this one an id of its own: {_OWN_ID}."
        owners.report_problem(claim, "E04", message, hint)
    elif missing_entry:
        message = f"“{item_id}” is a copy of the item in {owner.path_and_line}."
        hint = f"Its words are also those of “{missing_entry.id}”, which is gone: write "
        owners.report_problem(claim, "E08", message, f"{hint}q: {missing_entry.id}, or {_OWN_ID}.")
        evidence.ids_found_elsewhere.add(missing_entry.id)
    else:
        owners.copied_claims.append(claim)
        message = f"“{item_id}” is a copy of the item in {owner.path_and_line}."
        hint = "Give this one an id of its own; the check writes one with --fix."
        owners.report_problem(claim, "E08", message, hint)


def _report_differences_from_lock(
    entry: LockEntry, owner: ItemIdClaim, evidence: IdEvidence, owners: IdOwners
) -> None:
    """Report W07, W34, W09: differences between an item and its line of ids.lock."""
    fingerprint = owner.fingerprint
    if evidence.is_text_replaced(entry, fingerprint):
        _report_or_drop_changed_item(owner, evidence, owners)
    elif entry.type != fingerprint.type and not fingerprint.is_broken:
        message = f"“{entry.id}” was of the type “{entry.type}” and is “{fingerprint.type}” now."
        hint = "Give it a new id; or accept it with --fix, and its counts begin anew."
        owners.report_problem(owner, "W34", message, hint)
    elif have_several_options_changed(entry, fingerprint):
        message = f"Several options of “{entry.id}” changed at once."
        hint = "Their counts go on in order; confirm with --fix, or pin <!-- = key -->."
        owners.report_problem(owner, "W09", message, hint)


def _report_or_drop_changed_item(
    owner: ItemIdClaim, evidence: IdEvidence, owners: IdOwners
) -> None:
    """Report W07, or drop the item and report E07 if another id is missing that may be its own.

    A rewritten or translated text usually is the same item.
    """
    item_id, missing_entry = (
        owner.fingerprint.id,
        evidence.find_nearest_missing_entry(owner.fingerprint),
    )
    owners.doubtful_ids.add(item_id)
    message = f"“{item_id}” says something quite different than it did"
    hint = "If it is another item, give it a new id; "
    hint += f"else run the check with --fix --accept {item_id}."
    if missing_entry:
        del owners.owner_claim_by_id[item_id]
        message = f"{message}, while “{missing_entry.id}” is gone"
        hint = f"If it is “{missing_entry.id}”, write q: {missing_entry.id}. {hint}"
    owners.report_problem(owner, "E07" if missing_entry else "W07", f"{message}.", hint)


def have_several_options_changed(entry: LockEntry, fingerprint: ItemIdentityFingerprint) -> bool:
    """Return whether several options changed, so that old and new cannot be paired."""
    if not entry.options or not fingerprint.options or entry.type != fingerprint.type:
        return False
    old, new = (Counter(o.text_hash for o in item.options) for item in (entry, fingerprint))
    return sum((new - old).values()) > 1 and sum((old - new).values()) > 1


def _collect_items_without_id(evidence: IdEvidence, owners: IdOwners) -> None:
    """Collect items without an id. Reports E06 for those that seem to have had one."""
    for path, parsed_file in evidence.parsed_files.items():
        for item in parsed_file.unidentified_items:
            if missing_id := evidence.find_similar_missing_entry(item, item.possible_ids):
                location = ProblemLocation(path, *item.insertion.position)
                _report_relocated_id(missing_id, location, "", evidence, owners)
            else:
                owners.unidentified_items.append((path, item))


def _report_relocated_id(
    missing_entry: LockEntry,
    location: ProblemLocation,
    place_phrase: str,
    evidence: IdEvidence,
    owners: IdOwners,
) -> None:
    """Report E06 for the item of a missing id that was found elsewhere."""
    evidence.ids_found_elsewhere.add(missing_entry.id)
    message = (
        f"“{missing_entry.id}” is gone and was not retired, and its words stand here{place_phrase}."
    )
    hint = f"Write q: {missing_entry.id} here; or, if this is another item, retire “{missing_entry.id}”: "
    hint += "write the date of today in place of the “-” of its line in ids.lock."
    owners.problems.append(make_problem(location, "E06", message, hint, missing_entry.id))


def _report_missing_ids(evidence: IdEvidence, owners: IdOwners) -> None:
    """Report E06 for all other missing ids, unless a file could not be read."""
    for entry in evidence.missing_entries.values():
        if evidence.is_fully_parsed and entry.id not in evidence.ids_found_elsewhere:
            hint = "Bring it back, or write the date of today in place of its “-”."
            message = f"“{entry.id}” is gone and was not retired."
            location = ProblemLocation(LOCK_FILE_NAME, entry.line)
            owners.problems.append(make_problem(location, "E06", message, hint, entry.id))
