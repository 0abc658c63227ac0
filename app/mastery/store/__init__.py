"""What mastery is judged by, read from the logs in few narrow questions."""

from app.mastery.store.firsts import first_answers
from app.mastery.store.known import load_mastery_data
from app.mastery.store.learned import TopicCardTotals, learned
from app.mastery.store.reading import PageProgress, pages
