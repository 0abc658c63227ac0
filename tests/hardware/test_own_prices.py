"""One's own prices: on the pages of parts, and offered to calculators."""

import re
from html import unescape

import pytest

from app.cli import server as serving
from app.estimator.hardware.prices import load_price_list

FILE = "\n".join(
    f"""[[price]]
part = "{part}"
price = {price}
currency = "{money}"
per = "{per}"
read_on = 2026-11-0{day}
"""
    for part, price, money, per, day in (
        ("h100-sxm5-80", 4.2, "USD", "hour", 2),
        ("h100-sxm5-80", 31000, "USD", "buy", 1),
        ("l40s", 1.1, "USD", "hour", 3),
        ("mi300x", 3.5, "EUR", "hour", 3),
    )
)


@pytest.fixture
def priced(app, client, tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text(FILE, encoding="utf-8")
    app.state.prices = load_price_list(str(path))
    assert not app.state.prices.problem
    return client


def text(page: str) -> str:
    """What a reader reads, in one line."""
    words = unescape(re.sub(r"<[^>]+>", " ", page)).replace("\xa0", " ")
    return " ".join(words.split())


def test_the_page_of_a_part_shows_the_price_with_its_day(priced):
    shown = text(priced.get("/hardware/h100-sxm5-80").text)

    assert "Rent of one 4.2 USD/h your price file, November 2, 2026" in shown
    assert "Price of one 31,000 USD your price file, November 1, 2026" in shown


def test_parts_side_by_side_show_their_prices(priced):
    shown = text(priced.get("/hardware/compare?part=l40s&part=mi300x").text)

    assert "Rent of one 1.1 USD/h your price file, November 3, 2026 3.5 EUR/h" in shown
    assert "Price of one – –" in shown


def test_nothing_is_said_of_prices_without_a_file(client):
    for page in ("hardware/h100-sxm5-80", "calculators/cost"):
        assert "price file" not in client.get(f"/{page}").text


def offered(page: str) -> list[str]:
    """The links of the offers in their order."""
    section = page.partition("<h2>Your prices</h2>")[2].partition("</section>")[0]
    return [unescape(link) for link in re.findall(r'href="([^"]+)"', section)]


def test_the_cost_calculator_takes_rent_price_and_year_beside_what_was_typed(priced):
    links = offered(priced.get("/calculators/cost?gpus=8").text)

    first = "gpus=8&rent=4.2&price=31000&priced_in=2026"
    assert links[0] == f"/calculators/cost?{first}"
    taken = text(priced.get(links[0]).text)
    assert "your price file, November 1, 2026; in the form" in taken
    assert "They are of 2026." in taken


def test_a_calculator_of_jobs_takes_the_card_with_its_price(priced):
    links = offered(priced.get("/calculators/serving-capacity").text)

    assert "gpu=l40s" in links[1]
    assert "cost_per_gpu_hour=1.1" in links[1]
    assert not any("mi300x" in link for link in links)
    assert priced.get(links[1]).status_code == 200


def test_the_choice_of_accelerators_takes_every_price_of_an_hour(priced):
    (link,) = offered(priced.get("/calculators/accelerator-choice").text)

    assert "prices=h100-sxm5-80+4.2%2C+l40s+1.1" in link
    assert priced.get(f"{link}&rank=cost").status_code == 200


def test_the_start_says_how_many_prices_it_read_or_why_none(tmp_path, settings, capsys):
    path = tmp_path / "prices.toml"
    path.write_text(FILE, encoding="utf-8")
    named = settings.model_copy(update={"prices": str(path)})
    serving._announce_price_file(named, load_price_list(named.prices))
    path.write_text(FILE.replace("31000", "0"), encoding="utf-8")
    serving._announce_price_file(named, load_price_list(named.prices))
    said = capsys.readouterr()

    assert said.out == f"Prices: 4 from {path}\n"
    why = "price is “0”; write a number above 0, such as 4.2."
    assert said.err == f"The price file is not used: {path}, line 10: {why}\n"
