"""Templates: whatever a value holds is shown and never becomes markup."""

from pathlib import Path

import pytest
from jinja2 import DictLoader, Environment
from jinja2.exceptions import UndefinedError
from markupsafe import Markup

from app import ROOT
from app.web.render import StaticAssets, create_template_env

WORDS = "<b>\"'&</b>"
SHOWN = "&lt;b&gt;&#34;&#39;&amp;&lt;/b&gt;"


@pytest.fixture
def templates(tmp_path: Path) -> Environment:
    environment = create_template_env(tmp_path, StaticAssets(ROOT / "static"))
    environment.loader = DictLoader(
        {
            "base.html": "<h1>{% block title %}{% endblock %}</h1>",
            "macros.html": "{% macro field(words) %}<i>{{ words }}</i>{% endmacro %}",
            "_part.html": "<p>{{ words }}</p>",
        }
    )
    return environment


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("{{ words }}", SHOWN),
        ('<a title="{{ words }}">', f'<a title="{SHOWN}">'),
        ("{% for w in [words] %}{{ w }}{% endfor %}", SHOWN),
        ("{% set w %}<b>{{ words }}</b>{% endset %}{{ w }}", f"<b>{SHOWN}</b>"),
        ("{{ words ~ '<' }}", f"{SHOWN}&lt;"),
        ("{{ words | upper }}", "&lt;B&gt;&#34;&#39;&amp;&lt;/B&gt;"),
        ("{{ words | e }}", SHOWN),
        ("{% include '_part.html' %}", f"<p>{SHOWN}</p>"),
        (
            "{% from 'macros.html' import field %}{{ field(words) }}",
            f"<i>{SHOWN}</i>",
        ),
        (
            "{% extends 'base.html' %}{% block title %}{{ words }}{% endblock %}",
            f"<h1>{SHOWN}</h1>",
        ),
    ],
)
def test_words_are_shown_as_they_are(templates: Environment, source: str, shown: str):
    assert templates.from_string(source).render(words=WORDS) == shown


def test_markup_and_what_is_called_safe_are_left_as_they_are(templates: Environment):
    page = templates.from_string("{{ mark }}{{ words | safe }}{{ 3 }}{{ true }}")

    assert page.render(mark=Markup("<i>x</i>"), words="<b>") == "<i>x</i><b>3True"


def test_a_value_with_its_own_markup_is_asked_for_it(templates: Environment):
    class Icon:
        def __html__(self) -> str:
            return "<svg/>"

    assert templates.from_string("{{ icon }}").render(icon=Icon()) == "<svg/>"


def test_a_word_that_is_no_plain_string_is_shown_as_it_is(templates: Environment):
    class Slug(str):
        __slots__ = ()

    assert templates.from_string("{{ w }}").render(w=Slug("<")) == "&lt;"


def test_a_name_that_is_missing_is_an_error(templates: Environment):
    with pytest.raises(UndefinedError):
        templates.from_string("{{ nothing }}").render()
