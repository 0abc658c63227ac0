"""POST /quiz/{topic}/{question}/reports"""

from sqlmodel import select

from app.database.tables import ItemReport

ADDRESS = "/quiz/kv-cache/single"


def verdict(client, form) -> str:
    sent = form(client.get(ADDRESS).text)
    answered = client.post(sent.action, data={**sent.values, "answer": "ghjk"})
    return client.get(answered.headers["location"]).text


def test_a_report_is_kept_with_what_was_seen(client, form, session) -> None:
    sent = form(verdict(client, form), "/reports")
    body = {**sent.values, "words": " The key is wrong. "}

    answered = client.post(sent.action, data=body)

    assert answered.status_code == 303
    after = client.get(answered.headers["location"]).text
    assert "Thanks." in after
    assert "Right." in after, "the verdict is still there"
    (kept,) = session.exec(select(ItemReport)).all()
    assert (kept.item, kept.revision, kept.words) == (
        "single",
        "r1",
        "The key is wrong.",
    )
    assert kept.seed == int(sent.values["seed"])


def test_a_report_sent_twice_is_one(client, form, session) -> None:
    sent = form(verdict(client, form), "/reports")

    for _ in range(2):
        client.post(sent.action, data={**sent.values, "words": "Wrong."})

    assert len(session.exec(select(ItemReport)).all()) == 1


def test_an_empty_report_is_refused(client, form, session) -> None:
    sent = form(verdict(client, form), "/reports")

    refused = client.post(sent.action, data={**sent.values, "words": ""})

    assert refused.status_code == 422
    assert session.exec(select(ItemReport)).all() == []


def test_with_htmx_the_thanks_take_the_place_of_the_form(htmx, form) -> None:
    sent = form(htmx.get(ADDRESS).text)
    shown = htmx.post(sent.action, data={**sent.values, "answer": "ghjk"}).text
    report = form(shown, "/reports")

    thanks = htmx.post(report.action, data={**report.values, "words": "Wrong."})

    assert "Thanks." in thanks.text
    assert "<html" not in thanks.text
