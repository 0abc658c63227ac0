"""How much one file may ask of its reader, and what is raised beyond that.

Every limit is far above what a course needs, and low enough that no file of the
largest size takes longer than a few seconds to read.
"""

MOST_BYTES = 2_000_000  # of a file
MOST_LINES = 100_000  # of a file
MOST_BLOCKS = 200_000  # tokens of blocks in a file, and as many of words and marks
MOST_NESTED = 30  # quotes in each other, or half as many lists
MOST_LETTERS = 20_000  # of a paragraph, a heading or a cell
MOST_MARKS = 500  # of one kind in a paragraph, a heading or a cell
MOST_COLUMNS = 50  # of a table
MOST_CELLS = 20_000  # of a table
MOST_ITEMS = 5_000  # questions or cards in a file
MOST_OPTIONS = 200  # options, steps, pairs or blanks of a question
MOST_HINTS = 20
MOST_TERMS = 1_000  # of a glossary
MOST_ENTRIES = 1_000  # of a list in a register: topics, sources, domains, questions
MOST_MINUTES = 1_440  # of a mock exam
MOST_PARAMETERS = 40  # and as many expressions, of a question
MOST_COLORED = 10_000  # characters of a code block that is shown in colors

# What reading costs is counted in about microseconds, so that the same text always
# comes to the same sum, however busy the machine is.
MOST_EFFORT = 20_000_000
A_PROBLEM = 1_000
A_COMBINATION = 600
A_FORMULA = 300
A_LETTER_OF_A_FORMULA = 20
AN_ESTIMATE = 4_000
A_PLAN = 400_000


class LimitExceededError(ValueError):
    """A file that asks too much: why, what to do, and the line if it is known."""

    def __init__(self, message: str, hint: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.line = line


def price_of(estimate: str) -> int:
    """What one estimate costs: the planner tries hundreds of plans."""
    return A_PLAN if estimate.replace("_", "-") == "parallelism-plan" else AN_ESTIMATE
