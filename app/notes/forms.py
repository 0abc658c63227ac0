"""What may be sent as a note."""

from pydantic import BaseModel, Field

from app.notes.listing import SavedNote

LONGEST = 10_000


class NoteForm(BaseModel):
    """A note as typed; without words and unmarked it takes the old one away.

    It was written `beside` its section, or on the page of the notes. `shown` are the
    words that stood in the field at first, behind a “=”; empty from who does not say.
    """

    section: str = Field(max_length=120)
    words: str = ""
    marked: bool = False
    beside: bool = False
    shown: str = ""

    def read(self, topic: str, kept: str = "") -> SavedNote:
        """The note with the line ends of this side and no empty ends.

        Words that were `kept` meanwhile by another tab stay: alone where this one
        changed none, above its own where it did.
        """
        words, shown = _plain(self.words), _plain(self.shown[1:])
        if self.shown and kept not in {shown, words}:
            words = kept if words == shown else "\n\n".join(w for w in (kept, words) if w)
        return SavedNote(topic, self.section, words, self.marked)


def _plain(words: str) -> str:
    return words.replace("\r\n", "\n").strip()
