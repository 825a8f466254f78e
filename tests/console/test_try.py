"""Try: an expression beside a document, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

import xsift
from tests.console.conftest import go, marked, paste, write

ATOM = "http://www.w3.org/2005/Atom"


def verdict(page: Page, text: str) -> None:
    expect(page.locator(".verdict")).to_contain_text(text)


def test_it_begins_with_a_sample_and_what_is_selected_in_it(page: Page) -> None:
    verdict(page, "Selects 1 node")
    assert marked(page) == "<hl1>Spark 5 reads XML by the million</hl1>"
    steps = page.locator(".steps li")
    expect(steps).to_have_count(2)
    expect(page.locator(".decision")).to_contain_text("the index decides alone")


@pytest.mark.parametrize(
    ("xpath", "text"),
    [
        ("//keyword/@key", 'key="computing"key="open source"'),
        ("//person/text()", "Ada Byron"),
        ("//keyword", '<keyword key="computing"/><keyword key="open source"/>'),
        ("//location[. = 'Zürich']", "<location>Zürich</location>"),
        (
            "//p[@lede]/following-sibling::p",
            "<p>Subscribers write what they want once, and are told when it comes.</p>",
        ),
    ],
)
def test_what_it_selects_is_marked_exactly(page: Page, xpath: str, text: str) -> None:
    write(page, xpath)
    page.wait_for_function(
        "text => [...document.querySelectorAll('.row .m')].map(e => e.textContent).join('') === text", arg=text
    )


@pytest.mark.parametrize(
    ("xpath", "text"), [("//p/text()[2]", "c"), ("//comment()[2]", "<!--2-->"), ("//b/@*", 'k="1"')]
)
def test_nodes_that_are_no_elements_are_marked_alone(page: Page, xpath: str, text: str) -> None:
    paste(page, '<r><p>a<b k="1"/>c<!--1--><!--2--></p></r>')
    write(page, xpath)
    page.wait_for_function(
        "text => [...document.querySelectorAll('.row .m')].map(e => e.textContent).join('') === text", arg=text
    )


def test_what_is_evaluated_is_told_apart(page: Page) -> None:
    write(page, "//p[count(../p) = 2]")
    verdict(page, "Selects 2 nodes")
    expect(page.locator(".decision")).to_contain_text("cannot be indexed")
    write(page, "count(//p) = 2")
    verdict(page, "a condition, which selects no node")
    write(page, "//p[@lede = 'no']")
    verdict(page, "Does not match")
    expect(page.locator(".steps .part, .steps .no").first).to_be_visible()


def test_an_error_stands_under_its_column_with_its_hint(page: Page) -> None:
    write(page, "//body[p")
    problem = page.locator(".problem")
    expect(problem).to_contain_text("predicate is not closed")
    expect(problem.locator(".hint")).to_have_text("add ]")
    first, second = problem.locator("pre").inner_text().split("\n")[:2]
    assert first == "//body[p"
    assert second.index("▲") == 8
    expect(page.get_by_role("textbox", name="Expression")).to_have_attribute("aria-invalid", "true")
    page.get_by_role("textbox", name="Expression").press_sequentially("]")
    expect(problem).to_be_empty()
    verdict(page, "Does not match")


def test_a_missing_prefix_is_bound_with_a_click(page: Page) -> None:
    page.get_by_label("Sample document").select_option("sample-feed.xml")
    page.get_by_label("Remove the prefix atom").click()
    write(page, "//f:entry/f:title")
    expect(page.locator(".problem")).to_contain_text('prefix "f" is not bound, column 3')
    row = page.locator(".namespaces tr", has_text=ATOM)
    expect(row).to_contain_text("16")
    row.get_by_role("button", name="Bind f").click()
    verdict(page, "Selects 2 nodes")


def test_names_that_are_in_another_namespace_are_put_right(page: Page) -> None:
    page.get_by_label("Sample document").select_option("sample-feed.xml")
    page.get_by_label("Remove the prefix atom").click()
    write(page, "/feed/entry[category/@term = 'howto']/title")
    verdict(page, "Does not match")
    expect(page.locator(".steps .hint").first).to_contain_text(f"in namespace '{ATOM}'")
    page.get_by_role("button", name="Put all names into their namespaces").click()
    expect(page.get_by_role("textbox", name="Expression")).to_have_value(
        "/atom:feed/atom:entry[atom:category/@term = 'howto']/atom:title"
    )
    verdict(page, "Selects 1 node")


def test_clicking_an_element_proposes_expressions_from_general_to_particular(page: Page) -> None:
    page.locator(".row [data-element]", has_text="<keyword").nth(1).click()
    choices = page.locator(".proposals .choice")
    expect(choices.first).to_contain_text("//keyword")
    counts = [int(text) for text in choices.locator("b").all_inner_texts()]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 2
    assert counts[-1] == 1
    page.locator(".proposals .choice", has_text="@key = 'open source'").click()
    expect(page.get_by_role("textbox", name="Expression")).to_have_value("//keyword[@key = 'open source']")
    verdict(page, "Selects 1 node")


def test_clicking_an_attribute_proposes_expressions_for_it(page: Page) -> None:
    page.get_by_label("Sample document").select_option("sample-invoice.xml")
    page.locator(".row [data-attribute=currencyID]").first.click()
    expect(page.locator(".proposals h2")).to_have_text("Expressions for @currencyID")
    page.locator(".proposals .choice", has_text="//cbc:PayableAmount/@currencyID").click()
    page.wait_for_function("() => document.querySelector('.row .m')?.textContent.startsWith('currencyID')")
    assert marked(page) == 'currencyID="CHF"'


def test_documents_are_pasted_dropped_opened_and_picked(page: Page, client: xsift.Client, tmp_path: Path) -> None:
    write(page, "//a")
    paste(page, "<r><a>pasted</a></r>")
    page.wait_for_function("() => document.querySelector('.row .m')?.parentNode.textContent.includes('pasted')")
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(['<r><a>dropped</a></r>'], 'dropped.xml'));
          const options = { dataTransfer: data, bubbles: true, cancelable: true };
          document.querySelector('.view').dispatchEvent(new DragEvent('drop', options));
        }"""
    )
    expect(page.locator(".document .name")).to_contain_text("dropped.xml")
    file = tmp_path / "latin.xml"
    file.write_bytes("<?xml version='1.0' encoding='iso-8859-1'?><r><a>Zürich</a></r>".encode("latin-1"))
    page.locator("#file").set_input_files(file)
    page.wait_for_function("() => document.querySelector('.row .m')?.parentNode.textContent.includes('Zürich')")
    client.publish("<r><a>kept</a></r>", label="kept document")
    page.reload()
    option = page.locator("option", has_text="kept document")
    option.wait_for(state="attached")
    page.get_by_label("Recent document").select_option(option.get_attribute("value"))
    expect(page.locator(".row").first).to_contain_text("<a>kept</a>")


def test_a_document_that_comes_late_does_not_take_the_place_of_another(page: Page, client: xsift.Client) -> None:
    client.publish("<late/>", label="the late one")
    page.reload()
    page.wait_for_selector(".verdict b")
    held: list[Route] = []
    page.route("**/documents/*", lambda route: held.append(route))
    recent = page.get_by_label("Recent document")
    with page.expect_request("**/documents/*"):
        recent.select_option(index=1)
    page.get_by_label("Sample document").select_option(label="Invoice (namespaces)")
    expect(page.locator(".document .name")).to_contain_text("Invoice")
    with page.expect_response("**/documents/*"):
        held[0].continue_()
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 300))")
    expect(page.locator(".document .name")).to_contain_text("Invoice")


def test_a_document_is_edited(page: Page) -> None:
    page.get_by_role("button", name="Edit").click()
    text = page.get_by_label("Document as text")
    expect(text).to_have_value(re.compile("<nitf"))
    text.fill("<nitf><hl1>Spark</hl1><hl1>Spark too</hl1></nitf>")
    verdict(page, "Selects 2 nodes")
    page.get_by_role("button", name="Look").click()
    page.wait_for_function(
        "text => [...document.querySelectorAll('.row .m')].map(e => e.textContent).join('') === text",
        arg="<hl1>Spark</hl1><hl1>Spark too</hl1>",
    )


def test_a_broken_document_shows_its_error_in_its_place(page: Page) -> None:
    paste(page, "<r>\n  <ä>𝒳</ä>\n  <b>text</c>\n</r>")
    expect(page.locator(".document > .bad")).to_contain_text("Line 3, column")
    rows = page.locator(".row").all_inner_texts()
    wrong = next(place for place, row in enumerate(rows) if "▲" in row)
    assert rows[wrong - 1] == "  <b>text</c>"
    assert "does not match" in rows[wrong]
    assert rows[wrong].index("▲") in (rows[wrong - 1].index("</c>"), rows[wrong - 1].index("c>"))
    paste(page, "not xml")
    expect(page.locator(".document > .bad")).to_be_visible()
    paste(page, "<r><hl1>Spark</hl1></r>")
    verdict(page, "Selects 1 node")
    expect(page.locator(".document > .bad")).to_be_empty()


@pytest.mark.parametrize("lines", [True, False], ids=["many lines", "one line"])
def test_a_document_of_5_MB_does_not_stop_the_page(page: Page, tmp_path: Path, lines: bool) -> None:
    end = "\n" if lines else ""
    item = "<item id='{0}'><name>thing {0}</name><p>{1}</p></item>" + end
    xml = "<r>" + "".join(item.format(number, "x" * 100) for number in range(33_000)) + "</r>"
    assert len(xml) > 5_000_000
    file = tmp_path / "large.xml"
    file.write_text(xml)
    write(page, "//item[@id > 32997]/name")
    # Others get their turn while it is read: a timer goes on.
    page.evaluate("() => { window.turns = 0; window.timer = setInterval(() => window.turns++, 1); }")
    page.locator("#file").set_input_files(file)
    verdict(page, "Selects 2 nodes")
    assert page.evaluate("clearInterval(window.timer), window.turns") >= 10
    assert page.locator(".row").count() < 150
    page.get_by_role("button", name="Next node").click()
    page.wait_for_function("() => document.querySelector('.row .m')?.textContent.startsWith('<name>')")
    assert "thing 32998" in marked(page)
    write(page, "//name")
    verdict(page, "Selects 33,000 nodes")
    page.get_by_role("button", name="Next node").click()
    expect(page.locator(".walk .at")).to_have_text("1 of 33,000")
    page.locator(".view").evaluate("view => { view.scrollTop = view.scrollHeight; }")
    page.wait_for_function("() => [...document.querySelectorAll('.row')].at(-1)?.textContent.includes('</r>')")
    assert page.locator(".row").count() < 150
    expect(page.get_by_role("button", name="Edit")).to_be_disabled()


def test_what_was_written_is_there_when_one_comes_back(page: Page) -> None:
    write(page, "//person")
    paste(page, "<r><person>Ada</person></r>")
    verdict(page, "Selects 1 node")
    go(page, "Live")
    go(page, "Try")
    expect(page.get_by_role("textbox", name="Expression")).to_have_value("//person")
    verdict(page, "Selects 1 node")


# What would it have caught?


def test_what_it_would_have_caught(page: Page, client: xsift.Client) -> None:
    for number in range(30):
        client.publish(f"<flow><n>{number}</n></flow>", label=f"flow {number}")
    write(page, "/flow[n = 7]")
    caught = page.locator(".caught")
    expect(caught.locator(".figure")).to_contain_text("1 of the last")
    expect(caught.locator("li")).to_have_count(1)
    caught.get_by_role("button", name="flow 7", exact=True).click()
    verdict(page, "Selects 1 node")
    expect(page.locator(".row").first).to_contain_text("<n>7</n>")
    write(page, "//*")
    expect(caught.locator(".warning")).to_have_text("It matches nearly everything.")
    write(page, "//nobody-has-this")
    expect(caught.locator(".warning")).to_have_text("It matches nothing of what came lately.")
    caught.get_by_label("How many documents").select_option("100")
    expect(caught.locator(".warning")).to_be_visible()
    write(page, "//*[")
    expect(caught).to_contain_text("when the expression is valid")
