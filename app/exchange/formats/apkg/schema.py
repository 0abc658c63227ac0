"""The collection inside an Anki package: tables, note types, decks (schema 11)."""

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

TABLES = """
CREATE TABLE col (id integer primary key, crt integer not null, mod integer not null,
  scm integer not null, ver integer not null, dty integer not null,
  usn integer not null, ls integer not null, conf text not null, models text not null,
  decks text not null, dconf text not null, tags text not null);
CREATE TABLE notes (id integer primary key, guid text not null, mid integer not null,
  mod integer not null, usn integer not null, tags text not null, flds text not null,
  sfld integer not null, csum integer not null, flags integer not null,
  data text not null);
CREATE TABLE cards (id integer primary key, nid integer not null, did integer not null,
  ord integer not null, mod integer not null, usn integer not null,
  type integer not null, queue integer not null, due integer not null,
  ivl integer not null, factor integer not null, reps integer not null,
  lapses integer not null, left integer not null, odue integer not null,
  odid integer not null, flags integer not null, data text not null);
CREATE TABLE revlog (id integer primary key, cid integer not null,
  usn integer not null, ease integer not null, ivl integer not null,
  lastIvl integer not null, factor integer not null, time integer not null,
  type integer not null);
CREATE TABLE graves (usn integer not null, oid integer not null, type integer not null);
CREATE INDEX ix_notes_usn on notes (usn);
CREATE INDEX ix_notes_csum on notes (csum);
CREATE INDEX ix_cards_usn on cards (usn);
CREATE INDEX ix_cards_nid on cards (nid);
CREATE INDEX ix_cards_sched on cards (did, queue, due);
CREATE INDEX ix_revlog_usn on revlog (usn);
CREATE INDEX ix_revlog_cid on revlog (cid);
"""
# Fixed for ever: an import finds the note type of an earlier one by its number.
ONE_WAY = 1763683200001
BOTH_WAYS = 1763683200002
_SIDES = 1763683201000
_MADE = 1763683200
_CSS = """.card { font-family: sans-serif; font-size: 1.2rem; text-align: left;
  max-width: 40rem; margin: auto; }
pre, code { font-family: monospace; }
table { border-collapse: collapse; } td, th { padding: 0.2rem 0.6rem; }"""


@dataclasses.dataclass(frozen=True, slots=True)
class CollectionCreation:
    """The day from which a collection counts, when scheduling comes with it.

    `moment` is its beginning in seconds since 1970; `west` how many minutes the
    zone lay behind UTC then.
    """

    moment: int
    west: int

    def settings(self) -> dict[str, Any]:
        """What the configuration of the collection says of its days."""
        return {"schedVer": 2, "sched2021": True, "rollover": 4} | {"creationOffset": self.west}


def with_sides(count: int) -> int:
    """The note type whose `count` cards each have a front and a back of their own."""
    return ONE_WAY if count == 1 else _SIDES + count


def collection(
    decks: dict[str, int],
    moment: int,
    birth: CollectionCreation | None = None,
    sides: Iterable[int] = (),
) -> tuple[Any, ...]:
    """The row of the table col; `moment` in seconds since 1970.

    `sides` are the counts of cards that notes have whose cards are no reverses.
    """
    conf = _CONF | (birth.settings() if birth else {})
    deck_rows = {1: "Default"} | {number: name for name, number in decks.items()}
    return (
        1,
        birth.moment if birth else _MADE,
        moment * 1000,
        _MADE * 1000,
        11,
        0,
        0,
        0,
        json.dumps(conf),
        json.dumps({str(m["id"]): m for m in _models(sides)}),
        json.dumps({str(n): _deck(n, name, moment) for n, name in deck_rows.items()}),
        json.dumps({"1": _OPTIONS}),
        "{}",
    )


def _models(sides: Iterable[int]) -> Iterable[dict[str, Any]]:
    forth = ("Card 1", "{{Front}}", "Back")
    back = ("Card 2", "{{Back}}", "Front")
    yield _model(ONE_WAY, "Headroom", [forth], ["Front", "Back"])
    yield _model(BOTH_WAYS, "Headroom (both ways)", [forth, back], ["Front", "Back"])
    for count in sorted({count for count in sides if count > 1}):
        numbers = range(1, count + 1)
        yield _model(
            with_sides(count),
            f"Headroom ({count} cards)",
            [(f"Card {n}", f"{{{{Front {n}}}}}", f"Back {n}") for n in numbers],
            [f"{side} {n}" for n in numbers for side in ("Front", "Back")],
        )


def _model(
    number: int,
    name: str,
    templates: list[tuple[str, str, str]],
    fields: list[str],
) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "type": 0,
        "mod": _MADE,
        "usn": -1,
        "sortf": 0,
        "did": 1,
        "css": _CSS,
        "flds": [_field(n, f) for n, f in enumerate(fields)],
        "tmpls": [_template(n, *t) for n, t in enumerate(templates)],
        "req": [
            [n, "any", [fields.index(front.strip("{}"))]]
            for n, (_, front, _) in enumerate(templates)
        ],
        "latexPre": "",
        "latexPost": "",
        "tags": [],
        "vers": [],
    }


def _field(number: int, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "ord": number,
        "font": "Arial",
        "size": 20,
        "sticky": False,
        "rtl": False,
        "media": [],
    }


def _template(number: int, name: str, question: str, answer: str) -> dict[str, Any]:
    return {
        "name": name,
        "ord": number,
        "qfmt": question,
        "afmt": "{{FrontSide}}<hr id=answer>{{" + answer + "}}",
        "bqfmt": "",
        "bafmt": "",
        "did": None,
    }


def _deck(number: int, name: str, moment: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "mod": moment,
        "usn": -1,
        "desc": "",
        "dyn": 0,
        "conf": 1,
        "collapsed": False,
        "browserCollapsed": False,
        "extendNew": 0,
        "extendRev": 0,
        "newToday": [0, 0],
        "revToday": [0, 0],
        "lrnToday": [0, 0],
        "timeToday": [0, 0],
    }


_CONF = {
    "activeDecks": [1],
    "addToCur": True,
    "collapseTime": 1200,
    "curDeck": 1,
    "curModel": str(ONE_WAY),
    "dueCounts": True,
    "estTimes": True,
    "newSpread": 0,
    "nextPos": 1,
    "sortBackwards": False,
    "sortType": "noteFld",
    "timeLim": 0,
}
_OPTIONS = {
    "id": 1,
    "name": "Default",
    "mod": 0,
    "usn": 0,
    "autoplay": True,
    "maxTaken": 60,
    "replayq": True,
    "timer": 0,
    "new": {
        "bury": True,
        "delays": [1, 10],
        "initialFactor": 2500,
        "ints": [1, 4, 7],
        "order": 1,
        "perDay": 20,
        "separate": True,
    },
    "lapse": {
        "delays": [10],
        "leechAction": 0,
        "leechFails": 8,
        "minInt": 1,
        "mult": 0,
    },
    "rev": {
        "bury": True,
        "ease4": 1.3,
        "fuzz": 0.05,
        "ivlFct": 1,
        "maxIvl": 36500,
        "minSpace": 1,
        "perDay": 200,
    },
}
