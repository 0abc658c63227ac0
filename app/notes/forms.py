"""What may be sent as a note."""

from pydantic import BaseModel, Field

from app.notes.listing import Written

LONGEST = 10_000


class NoteForm(BaseModel):
    """A note as typed; without words and unmarked it takes the old one away.

    It was written `beside` its section, or on the page of the notes.
    """

    section: str = Field(max_length=120)
    words: str = ""
    marked: bool = False
    beside: bool = False

    def read(self, topic: str) -> Written:
        """The note with the line ends of this side and no empty ends."""
        words = self.words.replace("\r\n", "\n").strip()
        return Written(topic, self.section, words, self.marked)
