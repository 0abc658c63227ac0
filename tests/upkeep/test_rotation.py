"""Daily copies stay by day, then by week, then by month."""

import datetime as dt
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from app.database.backup import (
    find_expired_backups,
    list_automatic_backups,
    name_daily_backup,
    name_migration_backup,
    select_backup_dates_to_keep,
)

DAY = dt.date(2026, 6, 9)
DATES = st.sets(st.dates(dt.date(2024, 1, 1), dt.date(2027, 1, 1)), max_size=60)


def days_back(*numbers: int) -> set[dt.date]:
    return {DAY - dt.timedelta(days=n) for n in numbers}


def after(days: int) -> set[dt.date]:
    """What is left of a copy made every day for so long."""
    kept: set[dt.date] = set()
    for n in range(days):
        kept = select_backup_dates_to_keep({*kept, DAY + dt.timedelta(days=n)})
    return kept


def test_the_newest_seven_stay() -> None:
    assert select_backup_dates_to_keep(days_back(*range(7))) == days_back(*range(7))


def test_after_a_year_there_are_days_weeks_and_months() -> None:
    kept = sorted(after(365), reverse=True)

    last = DAY + dt.timedelta(days=364)  # Tuesday 8 June 2027
    assert kept[:7] == [last - dt.timedelta(days=n) for n in range(7)]
    assert [d for d in kept[7:] if d.month >= 5] == [
        dt.date(2027, 5, 31),  # the end of a month
        dt.date(2027, 5, 30),  # Sundays
        dt.date(2027, 5, 23),
    ]
    assert [d for d in kept if d.month < 5] == [
        dt.date(2027, 4, 30),
        dt.date(2027, 3, 31),
        dt.date(2027, 2, 28),
        dt.date(2027, 1, 31),
    ]


def test_after_a_long_pause_the_old_ones_stay_beside_the_new() -> None:
    old = {dt.date(2025, 1, 1), dt.date(2025, 1, 2)}

    assert select_backup_dates_to_keep({*old, DAY}) == {*old, DAY}


@given(DATES)
def test_the_newest_always_stays_and_never_too_many(dates: set[dt.date]) -> None:
    kept = select_backup_dates_to_keep(dates)

    assert kept <= dates
    assert len(kept) <= 7 + 4 + 6
    assert not dates or max(dates) in kept
    assert select_backup_dates_to_keep(kept) == kept


def test_only_copies_of_ours_are_looked_at(tmp_path: Path) -> None:
    names = [
        name_daily_backup(DAY),
        name_migration_backup(DAY, "0002", "0003"),
        "headroom-2026-02-31.zip",
        "headroom-mine.zip",
        "headroom-2026-06-08.zip.old",
        "notes.txt",
    ]
    for name in names:
        (tmp_path / name).touch()

    assert [path.name for path in list_automatic_backups(tmp_path)] == [
        "headroom-2026-06-09-before-0002-to-0003.zip",
        "headroom-2026-06-09.zip",
    ]


def test_what_need_not_stay_goes_with_the_copies_of_its_day(tmp_path: Path) -> None:
    for n in range(40):
        (tmp_path / name_daily_backup(DAY - dt.timedelta(days=n))).touch()
    (tmp_path / name_migration_backup(DAY - dt.timedelta(days=30), "0002", "0003")).touch()
    (tmp_path / "headroom-mine.zip").touch()

    gone = {path.name for path in find_expired_backups(tmp_path)}

    assert "headroom-2026-05-10-before-0002-to-0003.zip" in gone
    assert "headroom-mine.zip" not in gone
    assert name_daily_backup(DAY) not in gone
