"""The report in a real browser: headless Chromium, from disk."""

import json
import shutil

import pytest
from page_checks import HOSTILE_NAMES, labelled_ensemble

import veridical as vd

selenium = pytest.importorskip("selenium")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.actions.action_builder import ActionBuilder  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.select import Select  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs Chromium and its driver"),
]

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("profile")
    for argument in (*_ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def report_path(tmp_path_factory):
    ensemble = labelled_ensemble(5, 300, sharpness=0.6, source_names=HOSTILE_NAMES, class_names=HOSTILE_NAMES)
    path = tmp_path_factory.mktemp("report") / "report.html"
    vd.build_report(ensemble, intervals=False, title=HOSTILE_NAMES[0], out=path)
    return path


@pytest.fixture
def page(browser, report_path):
    """The report, freshly loaded; whatever happens to it must leave the console silent."""
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(report_path.as_uri())
    yield browser
    assert browser.get_log("browser") == []


def shown(page, selector):
    return [element for element in page.find_elements(By.CSS_SELECTOR, selector) if element.is_displayed()]


def centre(page, element):
    """Bring an element to where nothing that sticks to the window's edge covers it, and wait until it is there."""
    page.execute_async_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'});"
        "requestAnimationFrame(() => requestAnimationFrame(arguments[1]))",
        element,
    )
    return element


def click(page, selector):
    centre(page, page.find_element(By.CSS_SELECTOR, selector)).click()


def requested(page):
    """Addresses that the page asked for, from the log of the network."""
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def test_page_loads_from_disk_and_asks_for_nothing_else(page, report_path):
    assert page.execute_script("return document.readyState") == "complete"
    assert set(requested(page)) <= {report_path.as_uri()}
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_verdict_comes_first(page):
    first = page.find_element(By.CSS_SELECTOR, "main > section")
    assert first.get_attribute("id") == "verdict"
    assert "The mean of your 5 sources" in first.text


def test_diagrams_are_drawn(page):
    panels = shown(page, ".panel svg")
    assert len(panels) == 2
    for svg in panels:
        assert svg.size["width"] > 300
        assert svg.size["height"] > 300
        assert svg.find_elements(By.CSS_SELECTOR, "[id*='-bin-'] path")
    assert len(shown(page, "svg")) == 2 + 2 + 1 + 6 + 2 + 1


def test_diagram_follows_the_chosen_method(page):
    (before,) = shown(page, ".panel[data-side=after]")
    drawn, heading = before.get_attribute("innerHTML"), page.find_element(By.ID, "after-title").text
    assert (before.get_attribute("data-method"), heading) == ("ptde-kde", "pTDE")
    click(page, "input[name=after][value=tde] + span")
    (after,) = shown(page, ".panel[data-side=after]")
    assert after.get_attribute("data-method") == "tde"
    assert after.get_attribute("innerHTML") != drawn
    assert page.find_element(By.ID, "after-title").text == "TDE"
    click(page, "input[name=binning][value=width] + span")
    assert {panel.get_attribute("data-binning") for panel in shown(page, ".panel")} == {"width"}


def test_lines_can_be_hidden(page):
    lines = page.find_elements(By.CSS_SELECTOR, "#number [data-series=tde]")
    assert len(lines) == 6
    assert all(line.is_displayed() for line in lines)
    click(page, "#number input[value=tde]")
    assert not any(line.is_displayed() for line in lines)
    assert shown(page, "#number [data-series=atde]")


def test_hostile_names_stay_text(page):
    assert page.execute_script("return document.title") == HOSTILE_NAMES[0]
    assert page.find_element(By.TAG_NAME, "h1").text == HOSTILE_NAMES[0]
    sources = [cell.text for cell in page.find_elements(By.CSS_SELECTOR, "#sources-table tbody th")]
    for name in HOSTILE_NAMES[:3]:
        assert any(source.startswith(name) for source in sources)
    options = [option.text for option in Select(page.find_element(By.ID, "class-filter")).options]
    assert set(HOSTILE_NAMES[:3]) <= set(options)
    assert page.execute_script("return document.scripts.length") == 2
    assert page.find_elements(By.CSS_SELECTOR, "img, b, main script, svg script") == []


def test_tables_sort_by_column(page):
    heading = centre(page, page.find_elements(By.CSS_SELECTOR, "#metrics-table thead button")[2])
    assert heading.text == "ECE"

    def values():
        cells = page.find_elements(By.CSS_SELECTOR, "#metrics-table tbody td:nth-child(3)")
        return [float(cell.get_attribute("data-value")) for cell in cells]

    before = values()
    heading.click()
    assert values() == sorted(before)
    heading.click()
    assert values() == sorted(before, reverse=True)
    column = heading.find_element(By.XPATH, "..")
    assert column.get_attribute("aria-sort") == "descending"


def test_disputed_samples_filter_by_class(page):
    everything = len(shown(page, "#disputed-table tbody tr"))
    Select(page.find_element(By.ID, "class-filter")).select_by_value("2")
    rows = shown(page, "#disputed-table tbody tr")
    assert 0 < len(rows) < everything
    assert all("2" in row.get_attribute("data-classes").split() for row in rows)
    assert page.find_element(By.ID, "filter-count").text == f"{len(rows)} samples"
    Select(page.find_element(By.ID, "outcome-filter")).select_by_value("wrong")
    wrong = shown(page, "#disputed-table tbody tr")
    assert len(wrong) < len(rows)
    assert all(row.get_attribute("data-outcome") == "wrong" for row in wrong)


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        (".panel:not([hidden]) [id*='-dot-']", "mean confidence"),
        ("#sources [id*='sources-source-']", "mean reliability"),
        ("#agreement-frame", "same label"),
        ("#sweep-ece-frame", "DE: "),
        ("#risk-frame", "HV: "),
        ("#disagreement-right-frame", "Confidence"),
    ],
)
def test_figures_show_numbers_on_hover(page, selector, words):
    element = page.find_elements(By.CSS_SELECTOR, selector)[0]
    centre(page, element)
    box = page.execute_script("return arguments[0].getBoundingClientRect().toJSON()", element)
    pointer = ActionBuilder(page)
    pointer.pointer_action.move_to_location(int(box["x"] + 0.7 * box["width"]), int(box["y"] + 0.6 * box["height"]))
    pointer.perform()
    tip = page.find_element(By.ID, "tip")
    assert tip.is_displayed()
    assert words in tip.text


def test_keyboard_reaches_the_controls(page):
    reached = set()
    for _ in range(60):
        ActionChains(page).send_keys(Keys.TAB).perform()
        active = page.switch_to.active_element
        reached.add(active.get_attribute("id") or active.get_attribute("name") or active.get_attribute("value"))
    assert {"download", "theme", "after", "binning", "class-filter"} <= reached
    page.find_element(By.CSS_SELECTOR, "input[name=after]:checked").send_keys(Keys.ARROW_LEFT)
    (panel,) = shown(page, ".panel[data-side=after]")
    assert panel.get_attribute("data-method") == "temperature"


def test_theme_button_switches_colours(page):
    def background():
        return page.execute_script("return getComputedStyle(document.body).backgroundColor")

    light = background()
    page.find_element(By.ID, "theme").click()
    assert background() != light
    assert page.find_element(By.ID, "theme").get_attribute("aria-pressed") == "true"
    page.find_element(By.ID, "theme").click()
    assert background() == light


@pytest.mark.parametrize("width", [390, 1280])
def test_page_does_not_scroll_sideways(page, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_numbers_can_be_saved(page, tmp_path):
    page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.find_element(By.ID, "download").click()
    target = tmp_path / "veridical-report.json"
    WebDriverWait(page, 10).until(lambda _: target.exists())
    assert json.loads(target.read_text())["type"] == "report"


def test_page_prints(page):
    printed = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(printed["data"]) > 10_000
