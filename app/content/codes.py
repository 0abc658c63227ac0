"""Every problem that the check can name: what its code means, and what to do."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """What one code means, and what mends it whatever the case."""

    meaning: str
    remedy: str


# E keeps an item out of the course, W only speaks.
RULES: dict[str, Rule] = {
    "E00": Rule(
        "A file is missing or cannot be read.",
        "Create the file or correct its name. If Headroom itself failed, undo the "
        "last change and report it with the log.",
    ),
    "E01": Rule(
        "A heading has answers but no id.",
        "Write `<!-- q: some-id -->` below the heading, or run the check with `--fix`.",
    ),
    "E02": Rule(
        "A question comment stands without a heading above it.",
        "Write the question as a heading right above the comment.",
    ),
    "E03": Rule(
        "An id is not a lower-case slug.",
        "Use lower-case letters, digits and single hyphens, at most 80 of them: "
        "`kv-cache-size`.",
    ),
    "E04": Rule("Two items have the same id.", "Give one of the two a new id."),
    "E05": Rule(
        "An id that was retired is used again.",
        "Use a new id. Answers to the retired item would count for this one.",
    ),
    "E06": Rule(
        "An id has vanished without being retired.",
        "Bring the item back, or write today's date in its line of `ids.lock` in "
        "place of the second hyphen.",
    ),
    "W07": Rule(
        "An item kept its id but is a different item now.",
        "If it is another item now, give it a new id. If it is the same, run the "
        "check with `--fix`.",
    ),
    "E08": Rule(
        "A copied item kept the id of its original.",
        "Give the copy an id of its own. The check writes one with `--fix`.",
    ),
    "W09": Rule(
        "Options changed so much that their statistics may be mixed up.",
        "Run the check with `--fix` to let the counts go on in order, or pin "
        "options with `<!-- = key -->`.",
    ),
    "E10": Rule(
        "The front matter, a comment or a TOML file cannot be read.",
        "Write one `key: value` on each line, and quotes around a value that holds a "
        "colon. Close what is open.",
    ),
    "E11": Rule("A key is written twice.", "Keep one of the two."),
    "E12": Rule(
        "A key is not known.",
        "Correct the key. The message names the nearest known one.",
    ),
    "E13": Rule(
        "A type or value is not known.",
        "Correct the word or the date. The message names what is known.",
    ),
    "E14": Rule(
        "An objective is not in the syllabus.",
        "Write a number of `syllabus.toml`, or add the objective there.",
    ),
    "E15": Rule(
        "Difficulty is not a number from 1 to 5.",
        "Write `difficulty: 1` (known at once) to 5 (worked out).",
    ),
    "E16": Rule(
        "A page names no source.",
        "Name sources in the front matter, or cite one in the text with `[^key]`.",
    ),
    "W17": Rule(
        "A source has no https address.",
        'Write `address = "https://…"` in `sources.toml`.',
    ),
    "W18": Rule(
        "A page or source was last read more than a year ago.",
        "Read it again, correct what changed, and write the date of today.",
    ),
    "E20": Rule("No option is marked right.", "Mark the right answer with `[x]`."),
    "E21": Rule(
        "A single choice has two right options.",
        "Take the extra tick away, or say `type: multiple`.",
    ),
    "E22": Rule(
        "There are too few options.",
        "Add an option that is wrong and likely. A choice needs two, with `use: exam` "
        "three.",
    ),
    "W22": Rule(
        "A question has two options only, so mock exams leave it out.",
        "Add an option that is wrong and likely, or keep it for practice.",
    ),
    "E23": Rule("Two options say the same.", "Change or delete one of the two."),
    "E24": Rule(
        "A check box is malformed.",
        "Write `- [ ] text` or `- [x] text`, with one space in the empty box.",
    ),
    "W25": Rule(
        "A wrong option does not say why it is wrong.",
        "Write a quote below the option: two spaces, `>` and a sentence.",
    ),
    "W26": Rule(
        "The right option is clearly the longest.", "Make the options alike in length."
    ),
    "W27": Rule(
        "Only the right option is in code, bold or a number.",
        "Give a wrong option the same form.",
    ),
    "W28": Rule(
        "“All of the above” stands among shuffled options.",
        "Name what is meant, or say `shuffle: no`.",
    ),
    "W29": Rule(
        "The question asks for what is not so, without emphasis.",
        "Ask for what is so, or emphasize the word: `**not**`.",
    ),
    "W30": Rule(
        "The right option stands too often in one position of the file.",
        "Vary the position of the right option. Learners see shuffled options, "
        "printed copies do not.",
    ),
    "W31": Rule(
        "“a” or “an” at the end of the stem gives the answer away.",
        "Write “a(n)”, or move the article into the options.",
    ),
    "E32": Rule(
        "An item has no words to ask with.",
        "Write the question, or the front of the card, behind the `###`.",
    ),
    "E33": Rule(
        "Every option is marked right.",
        "Add an option that is wrong and likely, or take a tick away.",
    ),
    "W34": Rule(
        "An item kept its id and changed its type.",
        "Give it a new id. If it is the same item, run the check with `--fix`; what "
        "was answered before is counted apart.",
    ),
    "W35": Rule(
        "Two cards ask the same.",
        "Ask for something else, or delete one.",
    ),
    "W36": Rule(
        "A topic stands twice in the order of the syllabus, or not at all.",
        "Write each topic once into `order`.",
    ),
    "W37": Rule(
        "Two topics have the same title.",
        "Give one of them another title.",
    ),
    "W38": Rule(
        "A page has no summary, or no day of its last review.",
        "Write `summary:` and `reviewed:` into its front matter.",
    ),
    "E39": Rule(
        "A topic is to be read before itself.",
        "Take one of the requirements away that the message names.",
    ),
    "E40": Rule(
        "A numeric answer does not start with a number.",
        "Write the whole answer as one code span that begins with a number: `140 GB ±"
        " 3%`.",
    ),
    "E41": Rule(
        "A number with decimals has no tolerance.",
        "Add a tolerance, such as `± 2%`, or a range.",
    ),
    "E42": Rule(
        "A unit is unknown, or two units do not fit together.",
        "Use a listed unit, and units of one kind in one question.",
    ),
    "E43": Rule(
        "A foreseen wrong value lies inside the accepted range.",
        "Narrow the tolerance, or delete the wrong value.",
    ),
    "E44": Rule(
        "An expression names something that does not exist.",
        "Define the name in `params` or `let` above its use, or correct it.",
    ),
    "E45": Rule(
        "An expression uses something that is not allowed.",
        "Write only what is listed under “Expressions”.",
    ),
    "E46": Rule(
        "A placeholder is undefined, or a parameter is never used.",
        "Define the placeholder in `params` or `let`, use `,` or `.2f` or `.3g` as its "
        "format, or delete what is unused.",
    ),
    "E47": Rule(
        "Some parameters give no usable answer.",
        "Change the values of the parameters, or narrow the tolerance. The message "
        "names the combination.",
    ),
    "W48": Rule(
        "What is shown differs from what is graded.",
        "Show more digits in the stem, or round the parameter.",
    ),
    "W49": Rule(
        "The right answer is the same for all parameters.",
        "Correct the expression, or ask without parameters.",
    ),
    "E50": Rule(
        "An order question has fewer than three steps.", "Write at least three steps."
    ),
    "E51": Rule("Two steps are equal.", "Change or delete one of them."),
    "E52": Rule(
        "A match table does not have two or three columns.",
        "Write a table of left, right and, if you like, why, with at least two pairs.",
    ),
    "E53": Rule(
        "Two cells of a column are equal without a note that both count.",
        "Say in the third column why both count, or change one.",
    ),
    "E54": Rule(
        "A blank is empty or not closed.",
        "Write `[[answer]]`, closed with two brackets.",
    ),
    "E55": Rule(
        "A blank stands inside a table cell.",
        "Put the blank into a sentence outside the table.",
    ),
    "W56": Rule(
        "The answer of a blank appears elsewhere in the text.",
        "Reword the text so that it does not give the answer.",
    ),
    "E57": Rule("A card has no back.", "Write the back of the card below its comment."),
    "E58": Rule(
        "The drawing of a question or a page is not named, or cannot be shown.",
        "Write `figure:` and the name of an SVG file in the same folder. The message "
        "says what the drawing may not hold.",
    ),
    "E59": Rule(
        "An option names no region of the drawing, or does not label it.",
        "Begin the option with the id of a group of the drawing, and write its name "
        "behind it: ``- [ ] `bmc` The BMC``.",
    ),
    "E60": Rule(
        "An image has no alternative text.",
        "Say what the picture shows: `![four networks of a cluster](networks.svg)`.",
    ),
    "E61": Rule(
        "A linked file, page or heading does not exist.",
        "Correct the link, or create what it names.",
    ),
    "E62": Rule(
        "HTML or an address outside the allowed list.",
        "Use Markdown, one of the allowed tags, or an address that begins with "
        "`https://` or `#`, or is a path.",
    ),
    "E63": Rule(
        "Math cannot be converted.",
        "Write plain LaTeX math, without packages and own commands.",
    ),
    "W64": Rule(
        "A heading level is skipped.",
        "Use the next lower level. A page begins with `##`, because its title is in "
        "the front matter.",
    ),
    "W65": Rule("A stem has more than 120 words.", "Shorten the stem."),
    "W66": Rule("A glossary term is defined twice.", "Keep one meaning."),
    "W67": Rule("A hint contains the answer.", "Point the way without the answer."),
    "W68": Rule(
        "A row of a table has more or fewer cells than its head.",
        "Give each row as many cells as the head; write `\\|` for a bar in a cell.",
    ),
    "W69": Rule(
        "A dollar sign begins a formula that nothing ends.",
        "Write the second one, or `\\$` for the sign itself.",
    ),
    "E70": Rule(
        "The weights of the blueprint do not add up.",
        "Make the weights add up to 100, and the counts of an exam to its questions, "
        "by domains of `syllabus.toml`.",
    ),
    "E71": Rule(
        "There are too few questions for a mock exam.",
        "Write more questions for that domain, or ask fewer.",
    ),
    "W72": Rule("Two stems say nearly the same.", "Ask something else, or delete one."),
    "W73": Rule(
        "An objective has no page, no questions or no cards.",
        "Write what is missing, or add the objective to a topic that treats it.",
    ),
    "E74": Rule(
        "A fenced block or a box has a name that nothing reads.",
        "Write `calculator`, `figure bar` or a language behind the three backticks, "
        "and TIP, NOTE, IMPORTANT, WARNING or CAUTION in `[!…]`.",
    ),
    "E75": Rule(
        "Marks of an unfinished merge stand in the file.",
        "Decide for one of the texts, and delete the marks.",
    ),
    "E76": Rule(
        "A character stands in the file that cannot be seen.",
        "Delete it, or type it anew.",
    ),
    "W77": Rule(
        "Text to begin with was not replaced.",
        "Write what is meant there.",
    ),
    "E78": Rule(
        "A picture is none, or does not lie beside its page.",
        "Put an SVG, PNG, JPEG, WebP or GIF file into the folder of the topic.",
    ),
    "E80": Rule(
        "An estimate, card or model is not in the catalogue.",
        "Use a name of the catalogue. The message lists the nearest ones.",
    ),
    "E81": Rule(
        "An input or output does not exist.",
        "Use an input or output of that estimate.",
    ),
    "E82": Rule(
        "A figure is not the computed value.",
        "Run the check with `--fix`, and read the sentence again.",
    ),
    "E83": Rule(
        "A figure has no unit.",
        "Write the unit behind the number. The message gives the value.",
    ),
    "E84": Rule(
        "The inputs of a calculator or figure are out of range.",
        "Use a value in the range that the message names.",
    ),
    "W85": Rule(
        "A number with a unit is neither computed nor sourced.",
        "Make it a checked figure, or end its sentence with a footnote `[^key]`.",
    ),
    "E86": Rule(
        "A footnote names no source of the bibliography.",
        "Add the source to `sources.toml`, or correct the key.",
    ),
    "W87": Rule(
        "A topic lacks an exam box, a memory hook, cards or five questions.",
        "Add what the message names.",
    ),
    "E88": Rule(
        "A file, an item or a text is larger or deeper than can be read.",
        "Split the file into several topics, or the text into shorter pieces.",
    ),
    "W90": Rule(
        "A drawing has text that is smaller than 11 pixels where it is shown.",
        "Write it larger, or draw a second one for phones, `name.narrow.svg`.",
    ),
    "W91": Rule(
        "The wide and the narrow drawing of a figure differ in what they say.",
        "Give both the same title, the same desc and the same regions.",
    ),
}
