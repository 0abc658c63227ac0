"""What stands below a card before its answer is shown."""

import datetime as dt

from app.flashcards.store import CardRecord
from app.scheduling import retrievability


def note_of(held: CardRecord, day: dt.date, origin: str) -> str:
    """Where the card comes from, when it was seen last, how likely it is known."""
    standing = held.standing
    if standing is None:
        return f"{origin or 'A new card.'} Say the answer aloud or write it down first."
    if standing.state != "review":
        now = standing.last_day >= day
        seen = "You are still learning this card."
        origin = origin or (seen if now else "You have seen this card before.")
        return f"{origin} Say the answer aloud first."
    days = max(0, (day - standing.last_day).days)
    ago = "today" if not days else "yesterday" if days == 1 else f"{days} days ago"
    chance = round(retrievability(standing, day) * 100)
    return (
        f"{origin} Say it aloud or write it down first. "
        f"Last seen {ago}; about {chance}% likely you still know it."
    ).lstrip()
