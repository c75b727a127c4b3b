"""What people do with the page, in a real browser: `make test-browser`, which needs Chromium.

Figures of what was measured are printed with `-s`.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pytest
from explorations import HOSTILE, chain, small
from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.peers.programs import program
from benchmarks.peers.workloads import WORKLOADS
from mind_mlir.ir.module import Module
from mind_mlir.support.options import CompileOptions
from mind_mlir.tools.explorer.explore import explore
from mind_mlir.tools.explorer.page import html

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from mind_mlir.tools.explorer.exploration import Exploration

#: Opens a page of programs: a width, an address after `#`, and whether it is dark.
Open = Callable[..., Page]

CLICK = "document.querySelector(argument).click()"
SCROLL = "document.querySelectorAll('.list')[1].scrollTop = argument"
FIND = """
  const box = document.querySelector("input");
  box.value = argument;
  box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    place = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if place is None:
        pytest.fail("Chromium is needed: install Debian's package chromium, or say CHROMIUM=/path/to/it")
    with sync_playwright() as playwright:
        # Chromium's own sandbox needs rights that containers do not give.
        running = playwright.chromium.launch(executable_path=place, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    wrong: list[str] = []
    contexts = []

    def open_page(
        explorations: Sequence[Exploration], *, width: int = 1440, address: str = "", scheme: str = "light"
    ) -> Page:
        file = tmp_path / "page.html"
        file.write_text(html(explorations), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.on(
            "request", lambda request: wrong.append(request.url) if request.url.startswith("http") else None
        )
        page.goto(f"{file.as_uri()}{address}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def _pane(page: Page, number: int) -> str:
    return f".pane >> nth={number} >> .row"


def _lines(page: Page, classes: str, pane: int) -> list[int]:
    """Return which of the drawn lines of a pane have these classes."""
    rows = page.locator(".pane").nth(pane).locator(f".row{classes}")
    return [int(row.get_attribute("data-line") or -1) for row in rows.all()]


def _taken(page: Page, name: str, what: str, *arguments: object) -> float:
    """Return how many milliseconds pass from an action to the picture that shows what it did, at best.

    Other processes hold up some of the times, and the first one what opening has left to do.
    """
    timed = f"""async (argument) => {{
      const shown = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      await shown();
      const start = performance.now();
      {what};
      await shown();
      return performance.now() - start;
    }}"""
    taken = min(float(page.evaluate(timed, each)) for each in arguments)
    print(f"{name}: {taken:.0f} ms")
    return taken


def test_a_line_marks_what_it_came_from_and_became(opened: Open) -> None:
    page = opened([small()])
    page.click(f"{_pane(page, 0)} >> nth=2")
    assert _lines(page, ".lit", 0) == [2]
    assert _lines(page, ".lit", 1) == list(range(1, 9))
    expect(page.locator(".selection")).to_contain_text("MatMul")
    expect(page.locator(".selection")).to_contain_text("small.ir:3")
    page.click(f"{_pane(page, 1)} >> nth=4")
    assert _lines(page, ".lit", 0) == [2, 3]
    page.click(f"{_pane(page, 0)} >> nth=4")
    expect(page.locator(".selection")).to_contain_text("belongs to no operation")


def test_pointing_marks_and_scrolls_what_is_far(opened: Open) -> None:
    page = opened([chain(60, 3_500)])
    page.hover(f"{_pane(page, 0)} >> nth=30")
    expect(page.locator(".pane").nth(1).locator(".row.warm").first).to_be_visible()
    assert min(_lines(page, ".warm", 1)) >= 1_700


def test_texts_of_programs_run_nothing(opened: Open) -> None:
    page = opened([small("<img src=x onerror=alert(3)>", hostile=True)])
    assert page.locator(f"{_pane(page, 0)} >> nth=4 >> .code").text_content() == HOSTILE
    assert page.locator("img").count() == 0


def test_a_block_of_gpt2_opens_at_once(opened: Open) -> None:
    block = program(WORKLOADS["gpt2_block"])
    assert isinstance(block, Module)
    explored = explore(block, CompileOptions(target="avx2"), title="gpt2_block.ir")
    page = opened([explored], address="#panes=0.core*1+0.asm*1")
    taken = float(page.evaluate("performance.getEntriesByType('navigation')[0].domComplete"))
    print(f"opened: {taken:.0f} ms")
    assert taken < 2_000
    rows = [f".pane:first-child .row:nth-child({number})" for number in (20, 25, 30)]
    assert _taken(page, "selected", CLICK, *rows) < 100
    page.locator(".row", has_text="MatMul").first.click()
    assert len(_lines(page, ".lit", 1)) > 0


def test_a_notebook_shows_it(opened: Open) -> None:
    page = opened([small()])
    page.evaluate(
        """(text) => {
          const frame = document.createElement("iframe");
          frame.sandbox = "allow-scripts";
          frame.srcdoc = text;
          frame.style.cssText = "position: fixed; inset: 0; width: 1000px; height: 800px";
          document.body.replaceChildren(frame);
        }""",
        html([small(hostile=True)]),
    )
    frame = page.frame_locator("iframe")
    frame.locator(".row >> nth=2").click()
    expect(frame.locator(".selection")).to_contain_text("MatMul")


def test_two_hundred_thousand_lines_are_no_hindrance(opened: Open) -> None:
    page = opened([chain(3_000, 200_000)])
    print(f"opened: {page.evaluate('performance.now()'):.0f} ms")
    assert page.locator(".row").count() < 300
    rows = [f".pane:first-child .row:nth-child({number})" for number in (20, 25, 30)]
    assert _taken(page, "selected", CLICK, *rows) < 100
    assert _taken(page, "scrolled", SCROLL, 1_000_000, 2_000_000, 3_600_000) < 100
    assert _lines(page, "", 1)[-1] == 199_999
    assert _taken(page, "searched", FIND, "fadd %98", "fadd %99") < 500
    assert page.locator(".found-count").text_content() == "1 of 2,222"
    assert _taken(page, "searched for a letter", FIND, "f", "d") < 1_000
    page.keyboard.press("m")
    page.keyboard.press("g")
    assert _taken(page, "drew the whole graph", CLICK, *[".zoom button:last-child"] * 2) < 500


def test_search_goes_through_all_panes(opened: Open) -> None:
    page = opened([small()])
    page.keyboard.press("/")
    page.keyboard.type("zmm")
    expect(page.locator(".found-count")).to_have_text("8 lines")
    expect(page.locator(".chip .badge")).to_have_text(["8"])
    page.keyboard.press("Enter")
    expect(page.locator(".found-count")).to_have_text("1 of 8")
    page.keyboard.press("Escape")
    expect(page.locator("mark")).to_have_count(0)
    page.fill("input", "relu")
    expect(page.locator(".found-count")).to_have_text("2 lines")
    page.locator(".list").first.focus()
    for key, hit in (("n", 3), ("n", 3), ("p", 3)):
        page.keyboard.press(key)
        assert _lines(page, ".hit", 0) == [hit]
    page.fill("input", "(")
    page.click("button:text-is('.*')")
    expect(page.locator(".found-count")).to_contain_text("nterminated")


def test_the_first_stage_that_has_it_opens_where_no_pane_does(opened: Open) -> None:
    page = opened([small()], address="#panes=0.source*1")
    page.fill("input", "vfmadd")
    page.keyboard.press("Enter")
    expect(page.locator(".pane")).to_have_count(2)
    assert _lines(page, ".hit", 1) == [1]


def test_keys_walk_through_lines_and_panes(opened: Open) -> None:
    page = opened([small()])
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert _lines(page, ".chosen", 0) == [2]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    assert _lines(page, ".chosen", 1) == [9]
    page.keyboard.press("Escape")
    assert _lines(page, ".lit", 0) == []
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_contain_text("search all stages")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).not_to_be_visible()


def test_the_address_opens_the_same_page(opened: Open) -> None:
    page = opened([small()])
    page.click(".chip:has-text('mind')")
    page.click(f"{_pane(page, 0)} >> nth=3")
    page.keyboard.press("m")
    page.fill("input", "relu")
    expect(page).to_have_url(re.compile("find=relu"))
    page.reload()
    expect(page.locator(".pane")).to_have_count(3)
    assert _lines(page, ".chosen", 0) == [3]
    expect(page.locator("[role=tab][aria-selected=true]")).to_have_text("Memory")
    expect(page.locator("input")).to_have_value("relu")


def test_panes_change_their_width(opened: Open) -> None:
    page = opened([small()])
    before = page.locator(".pane").first.bounding_box()
    page.locator("#panes .splitter").focus()
    page.keyboard.press("ArrowRight")
    after = page.locator(".pane").first.bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] == pytest.approx(before["width"] + 24, abs=2)


def test_borders_follow_the_pointer(opened: Open) -> None:
    page = opened([small()])
    for border, part, grows in (
        ("#panes .splitter", ".pane >> nth=0", 1),
        ("#work > .splitter", "#dock", -1),
    ):
        place, before = page.locator(border).bounding_box(), page.locator(part).bounding_box()
        assert place is not None
        assert before is not None
        page.mouse.move(place["x"] + 3, 400)
        page.mouse.down()
        page.mouse.move(place["x"] + 3 - 60 * grows, 400, steps=5)
        page.mouse.up()
        after = page.locator(part).bounding_box()
        assert after is not None
        assert after["width"] == pytest.approx(before["width"] - 60, abs=3)


def test_what_is_shown_stays_when_other_parts_come_and_go(opened: Open) -> None:
    page = opened([chain(60, 3_500)])
    page.locator(".list >> nth=1").focus()
    page.keyboard.press("End")
    for action in ("v", "v", "m", "s"):
        page.keyboard.press(action)
        expect(page.locator(".pane >> nth=1 >> .row >> nth=-1")).to_be_in_viewport()
    page.click(".chip >> nth=0")
    expect(page.locator(".pane")).to_have_count(1)
    assert _lines(page, ".chosen", 0) == [3_499]
    expect(page.locator(".row.chosen")).to_be_in_viewport()


@pytest.mark.parametrize(("view", "x", "y"), [("g", 0.5, None), ("m", 0.45, 0.3), ("t", 0.3, 40.0)])
def test_pictures_and_texts_select_one_another(opened: Open, view: str, x: float, y: float | None) -> None:
    page = opened([small()])
    page.keyboard.press(view)
    canvas = page.locator(".surface canvas")
    box = canvas.bounding_box()
    assert box is not None
    if y is None:
        canvas.focus()
        page.keyboard.press("ArrowDown")
    else:
        canvas.click(position={"x": box["width"] * x, "y": y if y > 1 else box["height"] * y})
    assert _lines(page, ".lit", 0) == [2]
    assert len(_lines(page, ".lit", 1)) == 8


def test_the_graph_is_walked_by_keys(opened: Open) -> None:
    page = opened([small()])
    page.locator(".surface canvas").focus()
    for key, chosen in (
        ("ArrowDown", "MatMul"),
        ("ArrowDown", "Relu"),
        ("ArrowUp", "MatMul"),
        ("ArrowUp", "%0"),
        ("ArrowRight", "%1"),
    ):
        page.keyboard.press(key)
        expect(page.locator(".chosen-list")).to_contain_text(chosen)


def test_two_programs_are_shown_with_what_differs(opened: Open) -> None:
    page = opened([small(), small("other.ir", hostile=True)])
    expect(page.locator(".pane")).to_have_count(2)
    page.keyboard.press("d")
    assert _lines(page, ".is-changed", 0) == [4]
    assert _lines(page, ".is-changed", 1) == [4]
    expect(page.locator("#said")).to_have_text("Difference 1 of 1 in Source")
    expect(page.locator(".chip").first).to_contain_text("≠ 1")
    page.click(f"{_pane(page, 1)} >> nth=3")
    assert _lines(page, ".lit", 0) == [3]
    page.click(".switch button >> nth=1")
    expect(page.locator(".pane")).to_have_count(1)
    expect(page.locator(".side")).to_have_text("B")


def test_the_other_text_follows(opened: Open) -> None:
    one = chain(400, 5)
    page = opened([one, chain(420, 5)], address="#panes=0.source*1+1.source*1")
    page.locator(".list").first.hover()
    page.mouse.wheel(0, 3_600)
    page.wait_for_timeout(200)
    tops = [list_.evaluate("(list) => list.scrollTop") for list_ in page.locator(".list").all()[:2]]
    assert tops[0] > 3_000
    assert tops[1] == pytest.approx(tops[0], abs=20)


def test_narrow_windows_have_one_pane(opened: Open) -> None:
    page = opened([small()], width=400)
    expect(page.locator(".pane")).to_have_count(1)
    page.click(".chip:has-text('Assembly')")
    expect(page.locator(".pane")).to_have_count(1)
    expect(page.locator(".pane .title")).to_have_value("0.asm")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


#: The least contrast of any text that is seen with what is behind it, and that text.
CONTRAST = """() => {
  const parsed = (text) => (text.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const light = ([red, green, blue]) => [red, green, blue]
    .map((part) => (part /= 255) <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parsed(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  let least = [21, ""];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility() || ["SCRIPT", "OPTION"].includes(element.tagName)) continue;
    const lights = [light(parsed(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05);
    if (ratio < least[0]) least = [ratio, element.outerHTML];
  }
  return least;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(opened: Open, scheme: str) -> None:
    page = opened([small(), small("other.ir", hostile=True)], scheme=scheme)
    page.click(".chip:has-text('Assembly')")
    page.click(f"{_pane(page, 0)} >> nth=2")
    page.fill("input", "relu")
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    for view in ("s", "o"):
        page.locator(".list").first.focus()
        page.keyboard.press(view)
        ratio, text = page.evaluate(CONTRAST)
        assert ratio >= 4.5, text


def test_everything_that_is_pressed_has_a_name(opened: Open) -> None:
    page = opened([small(), small("other.ir")])
    nameless = """() => [...document.querySelectorAll("button, input, select, [tabindex]")]
      .filter((each) => each.checkVisibility())
      .filter((each) => !(each.getAttribute("aria-label") || each.textContent.trim()))
      .map((each) => each.outerHTML)"""
    assert page.evaluate(nameless) == []


def test_colours_are_chosen_and_kept(opened: Open) -> None:
    page = opened([small()], scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.click("button[title^=Colours]")
    assert page.evaluate(background) != dark
    page.reload()
    assert page.evaluate(background) != dark


def test_a_program_with_nothing_has_a_page(opened: Open) -> None:
    from mind_mlir.tools.explorer.exploration import Exploration  # noqa: PLC0415 -- here alone

    page = opened([Exploration("empty.ir", "AVX2", (), ())])
    expect(page.locator("#panes")).to_contain_text("Choose a stage")
