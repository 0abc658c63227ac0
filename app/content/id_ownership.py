"""Decides which item owns an id, by ids.lock and similarity. Unclear cases are reported."""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from app.content.parsed_file import ItemFingerprint, LockEntry, ParsedFile
from app.markup.problems import ContentProblem, UnidentifiedItem, make_problem
from app.markup.text import jaccard_similarity

LOCK = "ids.lock"
COPIED = 0.6  # similarity from which an item counts as the same in other words
CLEAR_MARGIN = 0.5  # required lead of the most similar item over the next
_REPLACED = 0.3  # similarity below which an item counts as replaced
_SLIGHT_MARGIN = 0.2  # difference of two sketches that may be chance
_MAX_EQUAL_LINES = (
    5  # lines of ids.lock with the same heading or body up to which the match is significant
)
_RARE = 100  # lines of ids.lock up to which a sampled word counts as rare
_MOST_COMPARED = 20  # lines compared with one item
# A file with one of these errors was not read to the end. Do not report its missing
# items as deleted.
_HIDING = frozenset({"E00", "E01", "E02", "E03", "E10", "E11", "E12", "E75", "E88"})


class HasTextHashes(Protocol):
    """The hashed words of an item; see `ItemFingerprint` and `UnidentifiedItem`."""

    @property
    def sketch(self) -> tuple[int, ...]: ...
    @property
    def sketch_with_comment(self) -> tuple[int, ...]: ...
    @property
    def heading(self) -> str: ...
    @property
    def body(self) -> str: ...


@dataclasses.dataclass(frozen=True, slots=True)
class IdClaim:
    path: str
    fact: ItemFingerprint

    @property
    def place(self) -> tuple[str, int, int]:
        """Path, line and column of the item."""
        return self.path, self.fact.line, self.fact.column

    @property
    def path_and_line(self) -> str:
        return f"{self.path}:{self.fact.line}"


class IdEvidence:
    """Data from the course and its ids.lock for deciding who had an id first."""

    def __init__(
        self, claims: Mapping[str, list[IdClaim]], readings: Mapping[str, ParsedFile]
    ) -> None:
        lock = readings.get(LOCK)
        self.claims = claims
        self.readings = readings
        self.entries = {entry.id: entry for entry in (lock.lock if lock else ())}
        self.has_lock = lock is not None and not lock.problems
        self.whole = not any(_is_incompletely_parsed(r) for r in readings.values())
        self.broken: dict[str, str] = {}
        for path, reading in readings.items():
            for name, line in reading.claims:
                self.broken.setdefault(name, f"{path}:{line}")
        self.gone = {
            name: entry
            for name, entry in self.entries.items()
            if not (entry.retired or name in claims or name in self.broken)
        }
        self.relocated: set[str] = set()  # missing ids whose items were found elsewhere
        self._alike: dict[str, list[LockEntry]] = defaultdict(list)
        for entry in self.entries.values():
            if entry.heading:
                self._alike[f"#{entry.heading}"].append(entry)
            if entry.body:
                self._alike[entry.body].append(entry)
        self._sampled: dict[int, list[str]] = defaultdict(list)
        for entry in self.entries.values():
            for number in entry.sketch:
                self._sampled[number].append(entry.id)

    def is_topic_in_syllabus(self, path: str) -> bool:
        """Return whether the syllabus lists the topic of a file."""
        reading = self.readings.get("syllabus.toml")
        topics = reading.syllabus.topics if reading and reading.syllabus else ()
        return path.startswith("topics/") and path.split("/")[1] in topics

    def score_entry_resemblance(self, entry: LockEntry, wording: HasTextHashes) -> float:
        """Return how similar an item is to a line of ids.lock, from 0 to 3."""
        same = entry.heading == wording.heading != "", entry.body == wording.body != ""
        return _similarity_to_entry(entry, wording) + sum(same)

    def is_replaced(self, entry: LockEntry, wording: HasTextHashes) -> bool:
        """Return whether an item's text is quite different from its line."""
        if entry in self._find_entries_sharing_heading_or_body(wording):
            return False
        return bool(entry.sketch) and _similarity_to_entry(entry, wording) < _REPLACED

    def find_closer_entry(self, own_entry: LockEntry, wording: HasTextHashes) -> LockEntry | None:
        """Return another line that an item clearly resembles more than its own; else None."""
        if (own_entry.heading, own_entry.body) == (wording.heading, wording.body):
            return None
        like = _similarity_to_entry(own_entry, wording)
        others = self._find_similar_entries_sharing_text(wording)
        if like < COPIED:
            others += self._find_similar_entries(wording, self.entries)
        best = self._find_nearest_entry([e for e in others if e.id != own_entry.id], wording)
        if best is None:
            return None
        # The same heading is stronger evidence than the same answers, such as True and
        # False.
        least = like - _SLIGHT_MARGIN if best.heading == wording.heading else like
        if _similarity_to_entry(best, wording) <= least:
            return None
        lead = self.score_entry_resemblance(best, wording) - self.score_entry_resemblance(
            own_entry, wording
        )
        return best if lead >= CLEAR_MARGIN else None

    def find_missing_id(
        self, wording: HasTextHashes, candidate_ids: Collection[str] = ()
    ) -> LockEntry | None:
        """Return the line of a missing id whose item this seems to be; else None."""
        said = [self.gone[name] for name in candidate_ids if name in self.gone]
        others = [e for e in self._find_similar_entries_sharing_text(wording) if e.id in self.gone]
        return self._find_nearest_entry(
            said or others + self._find_similar_entries(wording, self.gone), wording
        )

    def nearest_missing_entry(self, wording: HasTextHashes) -> LockEntry | None:
        """Return the line of a missing id that the item resembles most."""
        return self._find_nearest_entry([*self.gone.values()], wording)

    def _find_nearest_entry(
        self, entries: Sequence[LockEntry], wording: HasTextHashes
    ) -> LockEntry | None:
        return max(entries, key=lambda e: self.score_entry_resemblance(e, wording), default=None)

    def _find_entries_sharing_heading_or_body(self, wording: HasTextHashes) -> list[LockEntry]:
        """Return the lines with the same heading or body, if there are only a few."""
        entries = []
        for text in (f"#{wording.heading}", wording.body):
            same = self._alike.get(text, [])
            entries += same if len(same) <= _MAX_EQUAL_LINES else []
        return entries

    def _find_similar_entries_sharing_text(self, wording: HasTextHashes) -> list[LockEntry]:
        """Return those of them whose text is not entirely different."""
        same = self._find_entries_sharing_heading_or_body(wording)
        return [e for e in same if _similarity_to_entry(e, wording) >= _REPLACED]

    def _find_similar_entries(
        self, wording: HasTextHashes, candidates: Mapping[str, LockEntry]
    ) -> list[LockEntry]:
        """Return the lines with similar text, comparing only a few candidates."""
        sampled = {*wording.sketch, *wording.sketch_with_comment}
        rare = (self._sampled.get(number, ()) for number in sampled)
        shared = Counter(name for names in rare if len(names) <= _RARE for name in names)
        near = [candidates[name] for name, _ in shared.most_common() if name in candidates]
        return [e for e in near[:_MOST_COMPARED] if _similarity_to_entry(e, wording) >= COPIED]


def _similarity_to_entry(entry: LockEntry, wording: HasTextHashes) -> float:
    """Return the similarity of an item to a line of ids.lock, from 0 to 1."""
    like = jaccard_similarity(entry.sketch, wording.sketch)
    if entry.heading or entry.body:
        return like
    return max(like, jaccard_similarity(entry.sketch, wording.sketch_with_comment))  # an older line


def _is_incompletely_parsed(reading: ParsedFile) -> bool:
    """Return whether a file was not read to the end, so that missing items are unknown."""
    return any(p.code in _HIDING and not p.item for p in reading.problems)


_OWN_ID = "write q: alone in its comment, and run the check with --fix"


@dataclasses.dataclass(slots=True)
class IdOwners:
    """The owner of each id, and all problems with ids.

    `--fix` may give new ids to `copies` and `unidentified` items. It does not change
    the `doubtful` ids in files or ids.lock.
    """

    items: dict[str, IdClaim] = dataclasses.field(default_factory=dict)
    problems: list[ContentProblem] = dataclasses.field(default_factory=list)
    copies: list[IdClaim] = dataclasses.field(default_factory=list)
    unidentified: list[tuple[str, UnidentifiedItem]] = dataclasses.field(default_factory=list)
    doubtful: set[str] = dataclasses.field(default_factory=set)

    def report(self, claim: IdClaim, code: str, message: str, hint: str) -> None:
        problem = make_problem(claim.place, code, message, hint, claim.fact.id)
        self.problems.append(problem)


def assign_id_owners(
    fingerprints: Iterable[tuple[str, ItemFingerprint]],
    parsed_files: Mapping[str, ParsedFile],
    accepted_as_unchanged: Collection[str] = (),
) -> IdOwners:
    """Determine the owner of each id in a course.

    `accepted` are ids whose items count as unchanged, even if their text differs.
    """
    claims: dict[str, list[IdClaim]] = defaultdict(list)
    for path, fact in fingerprints:
        claims[fact.id].append(IdClaim(path, fact))
    evidence = IdEvidence(claims, parsed_files)
    owners = IdOwners()
    for name, claimed in claims.items():
        if name in evidence.broken:
            _report_id_in_broken_comment(claimed, evidence, owners)
        elif name not in evidence.entries:
            _assign_new_id_owner(claimed, evidence, owners)
        elif name in accepted_as_unchanged and len(claimed) == 1:
            owners.items[name] = claimed[0]
        else:
            _assign_locked_id_owner(evidence.entries[name], claimed, evidence, owners)
    _collect_items_without_id(evidence, owners)
    _report_missing_ids(evidence, owners)
    return owners


def _report_id_in_broken_comment(
    claimed: list[IdClaim], evidence: IdEvidence, owners: IdOwners
) -> None:
    """Report E04: the id also appears in a broken comment, which may be its owner's."""
    name = claimed[0].fact.id
    owners.doubtful.add(name)
    for claim in claimed:
        where = evidence.broken[name]
        message = f"“{name}” stands in {where} as well, in a comment that is broken."
        hint = f"Mend that comment first; or, if this is the newer one, {_OWN_ID}."
        owners.report(claim, "E04", message, hint)


def _assign_new_id_owner(claimed: list[IdClaim], evidence: IdEvidence, owners: IdOwners) -> None:
    """Settle an id that is not in ids.lock."""
    owner, name = _find_original_owner(None, claimed, evidence), claimed[0].fact.id
    if owner is None:
        _report_ambiguous_owner(claimed, "ids.lock does not know it", owners)
        return
    owners.items[name] = owner
    _report_copies(claimed, owner, evidence, owners)
    if missing_id := evidence.find_missing_id(owner.fact):
        owners.doubtful.add(name)
        _report_relocated_id(missing_id, owner.place, f" as “{name}”", evidence, owners)
    elif evidence.has_lock and not owner.fact.broken:
        message = f"“{name}” is not in ids.lock yet, so that nothing guards it."
        hint = "Run the check with --fix, and commit ids.lock."
        owners.report(owner, "W97", message, hint)


def _report_ambiguous_owner(claimed: list[IdClaim], reason: str, owners: IdOwners) -> None:
    """Report E04 for several items with the same id, if the original is unknown.

    If all have the same text, the first is served.
    """
    name = claimed[0].fact.id
    owners.doubtful.add(name)
    told = claimed
    if _have_all_same_text(claimed):
        owners.items[name], *told = claimed
    for claim in told:
        other = next(c for c in claimed if c is not claim)
        message = f"“{name}” is the id of the item in {other.path_and_line} as well, and {reason}."
        hint = f"If this is the newer one, {_OWN_ID}."
        owners.report(claim, "E04", message, hint)


def _have_all_same_text(claimed: list[IdClaim]) -> bool:
    return len({(c.fact.heading, c.fact.body) for c in claimed}) == 1


def _assign_locked_id_owner(
    entry: LockEntry, claimed: list[IdClaim], evidence: IdEvidence, owners: IdOwners
) -> None:
    """Settle an id of ids.lock: find its owner, copies, and other items that use it."""
    if entry.retired:
        owners.doubtful.add(entry.id)
        for claim in claimed:
            message = f"“{entry.id}” was retired on {entry.retired}."
            hint = "Use a new id: answers to the old item would count for this one."
            owners.report(claim, "E05", message, hint)
        return
    rivals = {claim.place: evidence.find_closer_entry(entry, claim.fact) for claim in claimed}
    for claim in claimed:
        if rival := rivals[claim.place]:
            _report_text_of_other_id(entry, claim, rival, evidence, owners)
    left = [claim for claim in claimed if rivals[claim.place] is None]
    owner = _find_original_owner(entry, left, evidence)
    if owner is None:
        owners.doubtful.add(entry.id)
        if left:
            why = "ids.lock does not tell which of them had it first"
            _report_ambiguous_owner(left, why, owners)
        return
    owners.items[entry.id] = owner
    _report_copies(left, owner, evidence, owners)
    _compare_with_lock(entry, owner, evidence, owners)


def _report_text_of_other_id(
    entry: LockEntry, claim: IdClaim, rival: LockEntry, evidence: IdEvidence, owners: IdOwners
) -> None:
    """Report E07: the text is that of another id."""
    owners.doubtful.add(entry.id)
    evidence.relocated.add(rival.id)
    message = f"“{entry.id}” stands here with the words of “{rival.id}”."
    hint = f"Write q: {rival.id}"
    if rival.id in evidence.claims:
        hint = f"Give it an id of its own: {_OWN_ID}"
    accept = f"run the check with --fix --accept {entry.id}"
    hint += f"; or, if it is “{entry.id}” all the same, {accept}."
    owners.report(claim, "E07", message, hint)


def _find_original_owner(
    entry: LockEntry | None, claimed: list[IdClaim], evidence: IdEvidence
) -> IdClaim | None:
    """Return the item that had the id first, if the evidence is unambiguous; else None.

    That is the item most similar to ids.lock; of several, the one in the file recorded
    there; of items with the same text, the one in a topic that the syllabus lists.
    """
    if len(claimed) < 2:
        return claimed[0] if claimed else None
    best = _find_nearest_claims(entry, claimed, evidence) if entry else claimed
    beside = [c for c in claimed if entry is not None and c.path == entry.path]
    if beside:
        both = [claim for claim in best if claim in beside]
        return both[0] if len(both) == 1 else None
    if len(best) > 1 and _have_all_same_text(best):
        best = [claim for claim in best if evidence.is_topic_in_syllabus(claim.path)]
    return best[0] if len(best) == 1 else None


def _find_nearest_claims(
    entry: LockEntry, claimed: list[IdClaim], evidence: IdEvidence
) -> list[IdClaim]:
    """Return the items that are most similar to a line of ids.lock."""
    known = [c for c in claimed if not evidence.is_replaced(entry, c.fact)]
    ranks = [evidence.score_entry_resemblance(entry, claim.fact) for claim in known]
    most = max(ranks, default=0.0)
    return [c for c, rank in zip(known, ranks, strict=True) if most - rank < CLEAR_MARGIN]


def _report_copies(
    claimed: list[IdClaim], owner: IdClaim, evidence: IdEvidence, owners: IdOwners
) -> None:
    for claim in claimed:
        if claim is not owner:
            _report_copy(claim, owner, evidence, owners)


def _report_copy(claim: IdClaim, owner: IdClaim, evidence: IdEvidence, owners: IdOwners) -> None:
    """Report E08 for a copy, or E04 for a different item with the id."""
    name, lost = claim.fact.id, evidence.find_missing_id(claim.fact)
    if jaccard_similarity(owner.fact.sketch, claim.fact.sketch) < COPIED:
        message = f"“{name}” is the id of the item in {owner.path_and_line}, by ids.lock."
        hint = f"Give this one an id of its own: {_OWN_ID}."
        owners.report(claim, "E04", message, hint)
    elif lost:
        message = f"“{name}” is a copy of the item in {owner.path_and_line}."
        hint = f"Its words are also those of “{lost.id}”, which is gone: write "
        owners.report(claim, "E08", message, f"{hint}q: {lost.id}, or {_OWN_ID}.")
        evidence.relocated.add(lost.id)
    else:
        owners.copies.append(claim)
        message = f"“{name}” is a copy of the item in {owner.path_and_line}."
        hint = "Give this one an id of its own; the check writes one with --fix."
        owners.report(claim, "E08", message, hint)


def _compare_with_lock(
    entry: LockEntry, owner: IdClaim, evidence: IdEvidence, owners: IdOwners
) -> None:
    """Report W07, W34, W09: differences between an item and its line of ids.lock."""
    fact = owner.fact
    if evidence.is_replaced(entry, fact):
        _report_replaced_item(owner, evidence, owners)
    elif entry.type != fact.type and not fact.broken:
        message = f"“{entry.id}” was of the type “{entry.type}” and is “{fact.type}” now."
        hint = "Give it a new id; or accept it with --fix, and its counts begin anew."
        owners.report(owner, "W34", message, hint)
    elif have_several_options_changed(entry, fact):
        message = f"Several options of “{entry.id}” changed at once."
        hint = "Their counts go on in order; confirm with --fix, or pin <!-- = key -->."
        owners.report(owner, "W09", message, hint)


def _report_replaced_item(owner: IdClaim, evidence: IdEvidence, owners: IdOwners) -> None:
    """Report W07, or E07 if another id is missing that may be the right one.

    A rewritten or translated text usually is the same item.
    """
    name, gone = owner.fact.id, evidence.nearest_missing_entry(owner.fact)
    owners.doubtful.add(name)
    message = f"“{name}” says something quite different than it did"
    hint = "If it is another item, give it a new id; "
    hint += f"else run the check with --fix --accept {name}."
    if gone:
        del owners.items[name]
        message = f"{message}, while “{gone.id}” is gone"
        hint = f"If it is “{gone.id}”, write q: {gone.id}. {hint}"
    owners.report(owner, "E07" if gone else "W07", f"{message}.", hint)


def have_several_options_changed(entry: LockEntry, fact: ItemFingerprint) -> bool:
    """Return whether several options changed, so that old and new cannot be paired."""
    if not entry.options or not fact.options or entry.type != fact.type:
        return False
    old, new = Counter(d for _, d in entry.options), Counter(d for _, d in fact.options)
    return sum((new - old).values()) > 1 and sum((old - new).values()) > 1


def _collect_items_without_id(evidence: IdEvidence, owners: IdOwners) -> None:
    """Collect items without an id. Reports E06 for those that seem to have had one."""
    for path, reading in evidence.readings.items():
        for item in reading.unidentified:
            if missing_id := evidence.find_missing_id(item, item.named):
                place = path, item.line, item.column
                _report_relocated_id(missing_id, place, "", evidence, owners)
            else:
                owners.unidentified.append((path, item))


def _report_relocated_id(
    missing_entry: LockEntry,
    place: tuple[str, int, int],
    place_phrase: str,
    evidence: IdEvidence,
    owners: IdOwners,
) -> None:
    """Report E06 for the item of a missing id that was found elsewhere."""
    evidence.relocated.add(missing_entry.id)
    message = (
        f"“{missing_entry.id}” is gone and was not retired, and its words stand here{place_phrase}."
    )
    hint = f"Write q: {missing_entry.id} here; or, if this is another item, retire “{missing_entry.id}”: "
    hint += "write the date of today in place of the “-” of its line in ids.lock."
    owners.problems.append(make_problem(place, "E06", message, hint, missing_entry.id))


def _report_missing_ids(evidence: IdEvidence, owners: IdOwners) -> None:
    """Report E06 for all other missing ids, unless a file could not be read."""
    for entry in evidence.gone.values():
        if evidence.whole and entry.id not in evidence.relocated:
            hint = "Bring it back, or write the date of today in place of its “-”."
            message = f"“{entry.id}” is gone and was not retired."
            place = LOCK, entry.line, 1
            owners.problems.append(make_problem(place, "E06", message, hint, entry.id))
