"""The words of a text without its marks, as search and comparison take them."""

from app.markup.markdown_tokens import parse_markdown, plain_text


def test_words_alone_lose_their_gaps_and_nothing_else() -> None:
    found = parse_markdown("Two  words\tand  \tmore")

    assert plain_text(found) == "Two words and more"
