"""The file of one's own prices: what it may say, and how mistakes in it are told."""

import datetime as dt
from pathlib import Path

import pytest

from app.estimator.hardware.prices import PriceFileError, load_price_list, read_price_file

GOOD = """\
# What we pay.
[[price]]
part = "H100"
price = 4.2
currency = "USD"
per = "hour"
read_on = 2026-11-01

[[price]]
part = "dgx-h100"
price = 300_000
currency = "EUR"
per = "buy"
read_on = 2026-10-30
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "prices.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_price_names_part_money_way_and_day(tmp_path):
    rent, bought = read_price_file(written(tmp_path, GOOD))

    assert (rent.part_id, rent.billing_period, rent.amount) == ("h100-sxm5-80", "hour", 4.2)
    assert (rent.formatted_price, rent.day) == ("4.2\xa0USD/h", dt.date(2026, 11, 1))
    assert (bought.part_id, bought.formatted_price) == ("dgx-h100", "300,000\xa0EUR")


@pytest.mark.parametrize(
    ("old", "new", "line", "why"),
    [
        ('"H100"', '"H1000"', 3, "part is “H1000”; write the id of a part, nearest: h"),
        ("4.2", '"4.2"', 4, "price is “4.2”; write a number above 0"),
        ("4.2", "-1", 4, "price is “-1”; write a number above 0"),
        ("4.2", "nan", 4, "price is “nan”; write a number above 0"),
        ("4.2", f"1{'0' * 400}", 4, "price is “1000"),
        ("4.2", f"1{'0' * 5000}", 14, "it is not TOML"),
        ("4.2", "true", 4, "price is “True”; write a number above 0"),
        ('"USD"', '"dollars"', 5, "currency is “dollars”; write three capital"),
        ('"hour"', '"month"', 6, "per is “month”; write hour for rent or buy"),
        ('"hour"', "[1]", 6, "per is “[1]”; write hour for rent or buy"),
        ("2026-11-01", '"today"', 7, "read_on is “today”; write a day"),
        ('currency = "EUR"', "", 10, "the price has no currency"),
        ('currency = "EUR"', "cost = 1", 12, "“cost” is none of part, price"),
        ("4.2", "4,2", 4, "it is not TOML"),
        ("[[price]]", "[[prices]]", 0, "write one [[price]] for each price"),
    ],
)
def test_a_mistake_names_file_and_line_and_what_is_allowed(tmp_path, old, new, line, why):
    path = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(PriceFileError) as raised:
        read_price_file(path)

    place = f"{path}, line {line}: " if line else f"{path}: "
    assert str(raised.value).startswith(place + why)


def test_one_part_has_one_price_for_each_way_of_paying(tmp_path):
    twice = GOOD + GOOD.partition("\n\n")[0].removeprefix("# What we pay.\n")
    with pytest.raises(PriceFileError, match=r"line 16: .* has two prices for “hour”"):
        read_price_file(written(tmp_path, twice))


def test_a_bad_file_leaves_one_sentence_and_no_prices(tmp_path):
    gone = load_price_list(str(tmp_path / "gone.toml"))
    (tmp_path / "latin.toml").write_bytes(b"\xff\xfe\x00")
    other = load_price_list(str(tmp_path / "latin.toml"))

    assert load_price_list("").problem == ""
    assert (gone.prices, other.prices) == ((), ())
    assert gone.problem.endswith("gone.toml: No such file or directory.")
    assert other.problem.endswith("latin.toml: it is not text in UTF-8.")
