"""/hardware: the list, chosen parts side by side, and the page of each part."""

import json
import re
from html import unescape

import pytest

from app.calculators import hardware_pages as listing
from app.cli import main
from app.estimator.hardware.part_values import find_part, list_parts
from tests.amounts import sample


def names(page: str) -> list[str]:
    """The parts in the order of the list."""
    return re.findall(r'<a href="/hardware/[^"]+">([^<]+)</a>', page)


def text(page: str) -> str:
    """What a reader reads, in one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).replace("\xa0", " ").split())


def test_the_list_names_every_accelerator_with_the_largest_memory_first(client):
    page = client.get("/hardware").text
    shown = names(page)

    assert len(shown) == sum(part.kind == "accelerator" for part in list_parts())
    sold = [next(p for p in list_parts() if p.name == unescape(n)) for n in shown]
    sizes = [part["memory"].number for part in sold if part["memory"].number]
    assert sizes == sorted(sizes, reverse=True)
    assert 'aria-sort="descending"' in page


@pytest.mark.parametrize("kind", listing.CATEGORIES)
def test_each_kind_has_its_list(client, kind):
    page = client.get(f"/hardware?kind={kind}")

    assert page.status_code == 200
    kinds = listing.CATEGORIES[kind].part_kinds
    assert len(names(page.text)) == sum(part.kind in kinds for part in list_parts())


def test_a_filter_keeps_what_is_like_that(client):
    shown = names(client.get("/hardware?vendor=AMD&memory=141").text)

    assert "Instinct MI300X" in shown
    assert all(name.startswith("Instinct") for name in shown)


def test_a_column_head_sorts_and_sorts_back(client):
    page = client.get("/hardware").text
    power = unescape(re.search(r'id="sort-tdp" href="([^"]+)"', page)[1])
    falling = client.get(power).text
    back = unescape(re.search(r'id="sort-tdp" href="([^"]+)"', falling)[1])

    assert names(falling)[0].startswith("Cerebras")
    rising = client.get(back).text
    assert 'aria-sort="ascending"' in rising
    assert names(rising)[0] == "T4"


def test_a_choice_that_is_not_offered_counts_as_not_made(client):
    for query in ("kind=x", "vendor=x", "memory=nan", "sort=__class__", "columns=x"):
        page = client.get(f"/hardware?{query}")
        assert page.status_code == 200
        assert names(page.text)


def test_nothing_like_that_leads_back_to_all(client):
    page = client.get("/hardware?vendor=Groq&memory=141").text

    assert "No part of the catalog is like that." in page
    assert 'href="/hardware?kind=accelerators">Show all</a>' in page


def test_unknown_gives_its_reason_under_the_table(client):
    page = client.get("/hardware").text
    letter = re.search(r'unknown</span> <a class="ref" href="#why-(\w+)"', page)[1]

    reason = re.search(rf'id="why-{letter}"><dt>{letter}</dt><dd>([^<]+)</dd>', page)[1]
    assert reason.endswith(".")


@pytest.mark.drawn
def test_every_part_has_a_page_with_each_value_and_its_source(client, subtests):
    for part in sample(list_parts(), 12, "pages"):
        with subtests.test(part=part.id):
            look_at(client, part)


def look_at(client, part):
    page = client.get(f"/hardware/{part.id}")

    assert page.status_code == 200
    read = text(page.text)
    for value in part.values:
        assert f'id="{value.name}"' in page.text
        assert value.formatted_value.replace("\xa0", " ") in read
        assert value.state == "known" or value.missing_reason in read
    plain = unescape(page.text)
    for source in part.sources:
        assert source in plain


def test_a_page_shows_the_driver_beside_the_label_and_both_conventions(client):
    read = text(client.get("/hardware/h100-sxm5-80").text)

    assert "80 GB or 85.5 GB?" in read
    assert "81,559 MiB" in read
    assert "450 GB/s 900 GB/s both ways" in read
    assert "1,978.9 TFLOP/s 3,957.8 TFLOP/s sparse" in read


def test_a_page_leads_to_calculators_with_its_part_chosen(client):
    page = client.get("/hardware/l40s").text

    assert 'href="/calculators/inference-memory?gpu=l40s"' in page
    chosen = client.get("/calculators/inference-memory?gpu=l40s").text
    assert '<option value="l40s" selected>' in chosen


def test_a_server_and_its_accelerator_lead_to_each_other(client):
    assert 'href="/hardware/h100-sxm5-80"' in client.get("/hardware/dgx-h100").text
    assert 'href="/hardware/dgx-h100"' in client.get("/hardware/h100-sxm5-80").text


def test_chosen_parts_stand_side_by_side_with_the_better_value_bold(client):
    page = client.get("/hardware/compare?part=h100-sxm5-80&part=mi300x").text
    memory = re.search(r"Memory as sold.*?</tr>", page, re.DOTALL)[0]

    worse, better = re.findall(r"<td([^>]*)>", memory)
    assert worse != better
    assert "Power" in page


def test_more_than_four_or_unknown_parts_are_said_not_shown(client):
    ids = [part.id for part in list_parts()[:6]]
    query = "&".join(f"part={name}" for name in (*ids, "nothing"))
    page = client.get(f"/hardware/compare?{query}").text

    assert f"left out:\n{find_part(ids[4]).name}, {find_part(ids[5]).name}." in page
    assert "There is no part “nothing”." in page


def test_a_comparison_of_nothing_does_not_explain_its_marks(client):
    page = client.get("/hardware/compare?part=nothing&part=neither").text

    assert "There is no part “nothing”, “neither”." in page
    assert "Select two parts or more" in page
    assert "the better value is bold" not in page


def test_one_part_alone_is_not_compared(client):
    page = client.get("/hardware/compare?part=h100-sxm5-80")

    assert page.status_code == 200
    assert "Select two parts or more" in page.text


def test_no_part_is_called_like_the_comparison():
    assert find_part("compare") is None


def test_a_part_that_is_not_there_is_not_found(client):
    answer = client.get("/hardware/h9000")

    assert answer.status_code == 404
    assert '<a class="btn main" href="/hardware">See all parts</a>' in answer.text


def test_every_page_leads_to_the_hardware(client):
    assert '<a href="/hardware">Hardware</a>' in client.get("/course").text


def test_the_search_finds_a_part_by_its_name(client):
    page = client.get("/search/results?q=mi300x").text

    assert 'href="/hardware/mi300x"' in page


def test_the_command_lists_filters_and_tells_what_is_unknown(capsys):
    assert main(["catalogue", "--kind", "accelerator", "--vendor", "google"]) == 0
    listed = capsys.readouterr().out
    assert "tpu-v6e" in listed
    assert "h100" not in listed

    assert main(["catalogue", "tpu-v6e", "--missing"]) == 0
    assert "tdp: " in capsys.readouterr().out

    assert main(["catalogue", "h100-sxm5-80"]) == 0
    assert "450 GB/s, one way, 900 GB/s both ways" in capsys.readouterr().out


def test_the_command_prints_base_units_as_json(capsys):
    assert main(["catalogue", "h100-sxm5-80", "--json"]) == 0
    (part,) = json.loads(capsys.readouterr().out)

    assert part["values"]["nvlink"]["value"] == 450e9
    assert part["values"]["nvlink"]["convention"] == "one way"
    assert part["values"]["fp4"]["state"] == "absent"
    assert part["values"]["memory"]["read_on"] == "2026-11-20"


def test_the_command_says_what_there_is_when_nothing_fits(capsys):
    assert main(["catalogue", "--vendor", "nobody"]) == 1
    assert "makers are NVIDIA" in capsys.readouterr().err
