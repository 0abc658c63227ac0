"""The expected score with its range and the target of the learner."""

from markupsafe import Markup

from app.drawings.ranges import ScoreRange, draw_score
from app.mastery.readiness import ScoreForecast


def draw_forecast(ahead: ScoreForecast, target: int | None) -> Markup:
    """Draw it; `target` is in percent."""
    of = ahead.questions
    says = f"Expected {ahead.expected} of {of}, most likely {ahead.low} to {ahead.high}"
    words = f"your target {target}%" if target else ""
    score = ScoreRange(
        score=ahead.expected,
        low=ahead.low,
        high=ahead.high,
        of=of,
        target=of * (target or 0) / 100,
        target_words=words,
    )
    told = f"{says}; {words}" if words else says
    return draw_score(score, told, (0, of // 2, of))
