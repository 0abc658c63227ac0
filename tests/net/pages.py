"""The links and forms of a page, and what a person without JavaScript sends."""

import random
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit

Field = tuple[str, str]
_TICKED = {"radio", "checkbox"}


class Form:
    """Where a form goes, its fields, the choices of its lists, and its buttons."""

    def __init__(self, action: str, method: str) -> None:
        self.action, self.method = action, method.lower()
        self.fields: list[dict[str, str]] = []
        self.choices: dict[str, list[tuple[str, bool]]] = {}
        self.buttons: list[Field] = []

    def untouched(self) -> list[Field]:
        """What is sent where nobody changes anything."""
        sent = [
            (field["name"], field.get("value", ""))
            for field in self.fields
            if field["type"] not in _TICKED or "checked" in field
        ]
        for name, choices in self.choices.items():
            selected = [value for value, selected in choices if selected]
            sent += [(name, value) for value in (selected or [choices[0][0]])[:1]]
        return sent

    def filled(self, chance: random.Random, **given: str) -> dict[str, list[str]]:
        """What is sent where everything open is answered by chance."""
        sent: dict[str, list[str]] = {}
        rows = {name: [value for value, _ in c] for name, c in self.choices.items()}
        for field in self.fields:
            name, value = field["name"], field.get("value", "")
            if field["type"] == "radio":
                rows.setdefault(name, []).append(value)
            elif field["type"] == "checkbox":
                sent.setdefault(name, []).extend([value] * chance.randrange(2))
            elif field["type"] in {"text", "textarea"} and not value:
                sent.setdefault(name, []).append(str(chance.randrange(1, 200)))
            elif field["type"] != "file":
                sent.setdefault(name, []).append(value)
        return sent | _chosen(rows, chance) | {n: [value] for n, value in given.items()}


def _chosen(rows: dict[str, list[str]], chance: random.Random) -> dict[str, list[str]]:
    """One value for each name; names that offer the same ones share them out."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, values in rows.items():
        alike.setdefault(tuple(values), []).append(name)
    chosen = {}
    for values, names in alike.items():
        real = [value for value in values if value] or [*values]
        if len(names) > 1:
            real = real[: len(names)]
        chance.shuffle(real)
        for number, name in enumerate(names):
            chosen[name] = [real[number % len(real)]]
    return chosen


class Page(HTMLParser):
    """A page as far as a walk needs it: the parts stand in the order of the page."""

    def __init__(self, text: str, address: str) -> None:
        super().__init__()
        self.address = address
        self.links: list[str] = []
        self.partial: list[str] = []
        self.forms: list[Form] = []
        self._form: Form | None = None
        self._list = ""
        self._typed = False
        self.feed(text)

    def form(self, ending: str) -> Form | None:
        """The first form whose address ends so."""
        fitting = (f for f in self.forms if urlsplit(f.action).path.endswith(ending))
        return next(fitting, None)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        for name in ("href", "src", "hx-get"):
            if given.get(name):
                into = self.partial if name == "hx-get" else self.links
                into.append(urldefrag(urljoin(self.address, given[name])).url)
        if tag == "form":
            action = urljoin(self.address, given.get("action", ""))
            self._form = Form(urldefrag(action).url, given.get("method", "get"))
            self.forms.append(self._form)
        elif self._form is not None:
            self._enter(self._form, tag, given)

    def _enter(self, form: Form, tag: str, given: dict[str, str]) -> None:
        if tag == "option" and self._list:
            choice = (given.get("value", ""), "selected" in given)
            form.choices.setdefault(self._list, []).append(choice)
        elif tag == "select":
            self._list = given.get("name", "")
        elif tag == "button" and not {"formaction", "popovertarget"} & given.keys():
            form.buttons.append((given.get("name", ""), given.get("value", "")))
        elif "name" in given and tag in {"input", "textarea"}:
            kind = tag if tag == "textarea" else given.get("type", "text")
            form.fields.append({**given, "type": kind})
            self._typed = tag == "textarea"

    def handle_data(self, data: str) -> None:
        if self._typed and self._form is not None:
            self._form.fields[-1]["value"] = data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._list = ""
        if tag == "textarea":
            self._typed = False
        if tag == "form":
            self._form = None
