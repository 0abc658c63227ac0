"""Calculators in a real browser: live, by keyboard, without JavaScript, unreachable."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from app.estimator import registry
from app.estimator.inputs import input_specs
from tests.amounts import FACTOR, each_of_sample, sample
from tests.browser.conftest import by_hand
from tests.browser.server import Server
from tests.published_configs import CONFIGS

pytestmark = pytest.mark.browser
PATH = "/calculators/inference-memory"


@pytest.fixture
def sheet(server: Server, page: Page) -> Page:
    """One calculator with JavaScript, with the inputs of its load unfolded."""
    page.goto(server.url + PATH)
    unfold(page, "Load")
    return page


def unfold(page: Page, group: str) -> None:
    page.locator("details.more > summary", has_text=group).click()


def verdict(page: Page) -> str:
    return page.locator(".out .verdict").inner_text().replace("\u00a0", " ")


def test_a_typed_number_changes_verdict_bar_working_and_address(sheet: Page) -> None:
    before, bar = verdict(sheet), sheet.locator(".out svg.g").first.inner_html()
    sheet.get_by_label("Context", exact=True).fill("100k")
    expect(sheet.locator(".out .verdict")).to_contain_text("Does not fit.")
    assert verdict(sheet) != before
    assert sheet.locator(".out svg.g").first.inner_html() != bar
    expect(sheet.locator(".work")).to_contain_text("100,000")
    expect(sheet).to_have_url(re.compile(r"\?context=100000$"))
    expect(sheet.locator(".fresh").first).to_be_visible()
    said = verdict(sheet)
    sheet.reload()
    assert verdict(sheet) == said, "the address alone brings the same reading back"


def test_a_folded_group_says_what_was_typed_in_it(sheet: Page) -> None:
    group = sheet.locator("details.more > summary", has_text="Load")
    sheet.get_by_label("Context", exact=True).fill("30,000")
    expect(group).to_contain_text("Context: 30,000 tokens")
    sheet.get_by_label("KV cache", exact=True).select_option(label="FP8")
    expect(group).to_contain_text("KV cache: FP8")
    expect(sheet).to_have_url(re.compile("cache=fp8"))
    sheet.reload()
    expect(group).to_contain_text("Context: 30,000 tokens")


def test_an_empty_field_follows_the_fields_that_it_depends_on(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/calculators/serving-capacity")
    shared = page.locator("input[name=tensor_parallel]")
    group = page.locator("details.more", has=shared)
    expect(shared).to_have_attribute("placeholder", "4")
    page.get_by_label("Model", exact=True).select_option("llama-3.1-8b")
    expect(shared).to_have_attribute("placeholder", "1")
    expect(group.locator("summary")).to_contain_text("GPUs that share the model: 1")
    group.locator("summary").click()
    page.get_by_label("GPUs of a decode replica", exact=True).fill("4")
    page.get_by_label("GPUs of a prefill replica", exact=True).fill("4")
    for name in ("tensor_parallel", "attention_parallel", "expert_parallel"):
        field = group.locator(f"[data-field={name}]")
        expect(field).to_contain_text("Not used: “GPUs of a decode replica” is given.")

    page.goto(f"{server.url}/calculators/cost")
    page.get_by_label("GPUs", exact=True).fill("8")
    staff = page.locator("input[name=staff]")
    expect(staff).to_have_attribute("placeholder", "88,388")
    page.reload()
    expect(staff).to_have_attribute("placeholder", "88,388")


def test_a_wrong_number_is_told_at_its_field_and_mended_there(sheet: Page) -> None:
    field = sheet.get_by_label("Context", exact=True)
    field.fill("5x")
    expect(sheet.locator("form .err")).to_contain_text("cannot be read")
    assert field.get_attribute("aria-invalid") == "true"
    assert field.get_attribute("aria-describedby")
    expect(sheet.locator(".out")).to_contain_text("No result until this is corrected.")
    reason = sheet.locator(".out .refusal .err")
    expect(reason).to_contain_text("Context: ")
    expect(reason).to_contain_text("cannot be read")
    expect(reason.get_by_role("link", name="Context")).to_have_attribute(
        "href", f"#{field.get_attribute('id')}"
    )
    field.fill("8k")
    expect(sheet.locator("form .err")).to_have_count(0)
    assert field.get_attribute("aria-invalid") is None
    expect(field).to_be_focused()


def test_degrees_are_stepped_by_doubling(sheet: Page) -> None:
    field = sheet.locator("input[name=tensor_parallel]")
    sheet.get_by_role("button", name="More: GPUs that share").click()
    expect(field).to_have_value("8")
    sheet.get_by_role("button", name="Fewer: GPUs that share").click()
    expect(field).to_have_value("4")


def test_a_size_of_ones_own_can_be_typed(sheet: Page) -> None:
    own = sheet.get_by_label("Model, a size such as 33B")
    expect(own).to_be_hidden()
    sheet.get_by_label("Model", exact=True).select_option(
        label="Another: size, Hub name, config.json…"
    )
    own.fill("13B")
    expect(sheet).to_have_url(re.compile("model=13B"))
    label, select = (
        sheet.locator(f"[data-field=model] {part}").bounding_box() for part in (".lab", "select")
    )
    assert label is not None
    assert select is not None
    assert label["y"] + label["height"] <= select["y"]
    assert label["width"] >= select["width"] - 1


def test_the_working_is_folded_by_its_key(sheet: Page) -> None:
    working = sheet.locator("details.work")
    assert working.get_attribute("open") is not None
    sheet.keyboard.press("w")
    assert working.get_attribute("open") is None


def test_without_an_answer_the_inputs_stay_and_the_page_says_so(server: Server, page: Page) -> None:
    sheet = by_hand(page)
    sheet.goto(server.url + PATH)
    unfold(sheet, "Load")
    sheet.route("**/result?**", lambda route: route.abort())
    sheet.get_by_label("Context", exact=True).fill("16k")
    expect(sheet.get_by_text("No answer from the server.")).to_be_visible()
    expect(sheet.get_by_label("Context", exact=True)).to_have_value("16k")
    sheet.unroute("**/result?**")
    sheet.get_by_role("button", name="Try now").click()
    expect(sheet).to_have_url(re.compile("context=16000"))


def test_everything_works_without_javascript(server: Server, plain_page: Page) -> None:
    page = plain_page
    page.goto(server.url + PATH)
    unfold(page, "Load")
    page.get_by_label("Context", exact=True).fill("100k")
    page.get_by_role("button", name="Calculate").click()
    assert "Does not fit." in verdict(page)
    page.get_by_label("Context", exact=True).fill("5x")
    page.get_by_role("button", name="Calculate").click()
    expect(page.locator("form .err")).to_contain_text("cannot be read")
    expect(page.get_by_label("Context", exact=True)).to_have_value("5x")


def test_two_scenarios_are_compared_live_and_swapped_by_key(server: Server, page: Page) -> None:
    page.goto(f"{server.url}{PATH}/compare?scenarios=2")
    page.get_by_label("Weights, B").select_option("fp8")
    expect(page.locator(".out .verdict")).to_contain_text("B has more room")
    expect(page).to_have_url(re.compile(r"compare\?b\.weights=fp8$"))
    page.reload()
    page.keyboard.press("s")
    expect(page).to_have_url(re.compile(r"compare\?a\.weights=fp8$"))


def test_a_calculator_in_a_text_answers_in_its_place(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/concepts/training-memory")
    inst = page.locator("section.inst").first
    said = inst.locator(".verdict").inner_text()
    field = inst.locator("input[name=gpus]")
    field.fill("64")
    expect(inst.locator(".verdict")).not_to_have_text(said)
    expect(page).to_have_url(re.compile("/concepts/training-memory$"))


@each_of_sample(
    "question, says",
    [
        ("Does it fit on my card?", "Fits"),
        ("How many GPUs serve my users?", "Meets the targets"),
        ("How is the largest model laid out?", "Tensor 8"),
    ],
    1,
)
def test_a_question_of_the_list_is_one_click_from_its_answer(
    server: Server, page: Page, question: str, says: str
) -> None:
    page.goto(f"{server.url}/calculators")
    page.get_by_role("link", name=question).click()
    expect(page.locator(".out .verdict")).to_contain_text(says)


# The other calculators below the one that is shown, as they came from the server: all
# of them have one frame and one style sheet. What is read off takes long to lay out,
# and the form has its width without it.
GATHER = """async (addresses) => {
  const main = document.querySelector("main");
  const [shown, ...others] = addresses;
  for (const e of main.children) e.dataset.of = shown;
  for (const address of others) {
    const text = await (await fetch(address)).text();
    const page = new DOMParser().parseFromString(text, "text/html");
    for (const e of page.querySelectorAll(".out"))
      if (!e.querySelector("select")) e.replaceChildren();
    const parts = [...page.querySelector("main").children];
    for (const e of parts) e.dataset.of = address;
    main.append(...parts);
  }
  for (const e of document.querySelectorAll("details")) e.open = true;
  return addresses.filter((address) =>
    !main.querySelector(`[data-of="${address}"] form`));
}"""
CUT = """() => [...document.querySelectorAll("select")].flatMap((select) => {
  const style = getComputedStyle(select);
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = style.font;
  const room = select.clientWidth - parseFloat(style.paddingLeft)
    - parseFloat(style.paddingRight);
  return [...select.options].map((o) => o.text)
    .filter((words) => room > 0 && pen.measureText(words).width > room + 1)
    .map((words) => [select.closest("[data-of]").dataset.of, words]);
})"""


def test_a_phone_is_wide_enough_for_every_calculator_with_all_unfolded(
    server: Server, page: Page
) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    too_wide = {}
    for name in registry.ESTIMATE_NAMES:
        page.goto(f"{server.url}/calculators/{name}", wait_until="domcontentloaded")
        width = page.evaluate(
            """() => {
                 document.querySelectorAll("details").forEach((details) => (details.open = true));
                 return document.documentElement.scrollWidth;
               }"""
        )
        if width > 390:
            too_wide[name] = width

    assert too_wide == {}


# Two beside each other have more room than three.
ENDS = {"": (390, 768, 1280), "/compare?scenarios=3": (390, 768, 1280)}
if FACTOR > 1:
    ENDS["/compare?scenarios=2"] = (390,)


@each_of_sample("end, widths", ENDS.items(), 1)
def test_no_choice_is_cut(server: Server, page: Page, end: str, widths: tuple[int, ...]) -> None:
    names = sample(registry.ESTIMATE_NAMES, 6, "cut")
    addresses = [f"/calculators/{name}{end}" for name in names]
    page.goto(server.url + addresses[0])
    assert page.evaluate(GATHER, addresses) == []

    cut = {}
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        if words := page.evaluate(CUT):
            cut[width] = words

    assert cut == {}


@pytest.mark.drill
def test_a_comparison_has_room_for_its_values_on_a_phone(server: Server, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{server.url}{PATH}/compare?concurrent=1600&b.concurrent=3200")
    value = page.get_by_label("Concurrent sequences, A")

    assert value.evaluate("e => e.scrollWidth <= e.clientWidth")
    assert value.evaluate("e => e.clientWidth") >= 60
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for figure in page.locator(".out [data-figure]").all():
        box = figure.bounding_box()
        assert box
        assert box["x"] + box["width"] <= 390


def test_a_gold_figure_leads_to_its_line_which_is_marked(server: Server, plain_page: Page) -> None:
    plain_page.goto(f"{server.url}{PATH}#max_context")
    line = plain_page.locator("#max_context")
    expect(line).to_be_visible()
    plain_page.goto(f"{server.url}/hardware/h100-sxm5-80#nvlink")

    marked = plain_page.locator("#nvlink > td").first
    plain = plain_page.locator("#tdp > td").first
    color = "e => getComputedStyle(e).backgroundColor"
    assert marked.evaluate(color) != plain.evaluate(color)


def test_ways_around_a_calculator_lead_on_with_what_was_typed(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/calculators/training-memory")
    page.get_by_label("GPUs", exact=True).fill("64")
    compare = page.get_by_role("link", name="Compare", exact=True)
    expect(compare).to_have_attribute("href", re.compile("gpus=64"))
    compare.click()

    page.wait_for_url(re.compile("/compare.*gpus=64"))
    page.locator("[name='a.gpus'], [name='gpus']").first.fill("40")
    swap = page.get_by_role("link", name=re.compile("Swap"))
    expect(swap).to_have_attribute("href", re.compile(r"b\.gpus=40"))


@pytest.mark.drill
@pytest.mark.drawn
def test_a_whole_configuration_is_pasted_into_any_calculator(server: Server, page: Page) -> None:
    # One whose models are on show, and one where they are folded.
    for name in registry.ESTIMATE_NAMES if FACTOR > 1 else ("inference-memory", "collectives"):
        entry = registry.find_estimate(name)
        if entry is None or "model" not in input_specs(entry.inputs_type):
            continue
        page.goto(f"{server.url}/calculators/{name}")
        select = page.locator("select[name=model]")
        if not select.is_visible():
            unfold(page, "Model")
        select.select_option("")
        page.locator("input[name=model].own").fill(json.dumps(CONFIGS["hybrid"], indent=2))
        expect(page).to_have_url(re.compile(r"model=config%3A"))
        expect(page.locator(".out .refusal")).to_have_count(0)
        assert page.locator("[data-figure]").count()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_link_to_a_figure_shows_it_below_the_whole_verdict(
    page: Page, server: Server, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(server.url + "/calculators/quantization#total")
    page.wait_for_load_state()

    box = "e => [e.getBoundingClientRect().top, e.getBoundingClientRect().bottom]"
    bar, verdict, figure = (
        page.locator(part).first.evaluate(box) for part in (".top", ".verdict", "#total")
    )
    assert bar[1] - 1.5 <= verdict[0] < verdict[1] <= figure[0] < 844
