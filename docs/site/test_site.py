"""Is the site whole, and readable on a screen and a phone, by day and by night? ``make docs-test``.

Links are checked in all pages. A headless Chromium opens some of them and the statement of a
report, and keeps screenshots in ``build/screenshots``.
"""

import functools
import http.server
import re
import shutil
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote_plus, unquote, urlsplit

import numpy as np
import pytest

import dpcal

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
SHOTS = ROOT / "build" / "screenshots"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PAGES = {
    "front": "docs/index.html",
    "tutorial": "docs/tutorials/table_to_model.html",
    "how-to": "docs/how_to/loaders.html",
    "table": "docs/how_to/migrating.html",
    "command line": "docs/reference/command_line.html",
    "mechanisms": "docs/reference/mechanisms.html",
    "errata": "docs/reference/errata/kan.html",
    "API": "docs/reference/api.html",
    "name": "docs/reference/api/dpcal.accountants.epsilon.html",
    "explanation": "docs/explanation/accountant.html",
    "evaluation": "docs/explanation/evaluation.html",
    "notebook": "notebooks/05_correlated_noise.html",
    "search": "search.html",
    "statement": "report/statement.html",
    "answers": "report/sp800-226.html",
}
# Searches, and the pages that answer them: one of these is among the first hits.
QUESTIONS = {
    "microbatch": "how_to/pytorch",
    "delta 0": "explanation/accountant|how_to/epsilon|tutorials/first_epsilon|reference/glossary",
    "frozen BatchNorm": "how_to/pytorch",
    "many releases": "how_to/releases|how_to/budgets|how_to/epsilon",
    "epochs that shuffle": "how_to/loaders",
    "Opacus": "how_to/pytorch|how_to/jax|how_to/migrating",
    "poisson": "how_to/|explanation/|tutorials/",
}
SCREENS = {"desktop": (1280, 900), "phone": (390, 844)}

pytestmark = pytest.mark.skipif(not SITE.exists(), reason="`make docs` builds the site first")


class Links(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.anchors = set(), {""}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        self.targets |= {given[key] for key in ("href", "src") if given.get(key)}


def test_no_link_is_dead():
    pages = {path: Links(path.read_text()) for path in SITE.rglob("*.html")}
    assert len(pages) > 40
    dead = []
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[there].anchors if there in pages else {unquote(parts.fragment)}
            if not there.exists() or unquote(parts.fragment) not in anchors:
                dead.append(f"{path.relative_to(SITE)}: {target}")
    assert dead == []


def test_every_document_is_on_the_site():
    documents = [*(ROOT / "docs").glob("**/*.md"), *(ROOT / "notebooks").glob("*.ipynb")]
    lost = [
        path.name
        for path in documents
        if not (SITE / path.relative_to(ROOT)).with_suffix(".html").exists()
    ]
    assert lost == []


@pytest.fixture(scope="module")
def address():
    """The address of a server of the site, with a report beside it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2_000, 3))
    plan = dpcal.calibrate.dpsgd(n=2_000, batch_size=200, epochs=2, epsilon=1.0, delta=1e-5)
    result = dpcal.run(dpcal.Logistic(X, X[:, 0] > 0, classes=[0, 1]), plan)
    shutil.rmtree(SITE / "report", ignore_errors=True)
    dpcal.report.save(SITE / "report", result)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, address):
    """A function that opens a page without a network, and the faults that it has found."""
    faults, contexts = [], []

    def goto(path, *, scheme="light", screen="desktop"):
        width, height = SCREENS[screen]
        context = browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": height}
        )
        contexts.append(context)
        page = context.new_page()
        page.route(re.compile(f"^(?!{address}|data:)"), lambda route: route.abort())
        page.on("console", lambda told: told.type == "error" and faults.append(told.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("requestfailed", lambda asked: faults.append(f"not loaded: {asked.url}"))
        page.goto(address + path, wait_until="load")
        return page

    yield goto, faults
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_without_a_fault(opened, name, screen, scheme):
    goto, faults = opened
    page = goto(PAGES[name], scheme=scheme, screen=screen)
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}-{screen}-{scheme}.png")
    assert faults == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page).response["violations"]
    serious = [
        (rule["id"], rule["nodes"][0]["html"][:200], rule["nodes"][0].get("failureSummary"))
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_search_finds_the_guide_without_a_network(opened, question):
    goto, faults = opened
    page = goto(f"search.html?q={quote_plus(question)}")
    page.wait_for_selector("#search-results li a", timeout=20_000)
    page.wait_for_function("document.querySelector('#search-results h2').innerText != 'Searching'")
    assert faults == []
    found = [link.get_attribute("href") for link in page.query_selector_all("#search-results li a")]
    assert re.search(QUESTIONS[question], " ".join(found[:3])), found[:6]
    assert [link for link in found if "_ext" in link] == []


@pytest.mark.parametrize("screen", SCREENS)
def test_tables_and_commands_fit_the_page(opened, screen):
    """A table is no wider than its page on either screen; a command does not scroll at 1280."""
    goto, _ = opened
    page = goto("docs/index.html", screen=screen)
    wide = []
    for path in [*SITE.glob("docs/**/*.html"), *SITE.glob("notebooks/*.html")]:
        if "reference/api/" in path.as_posix():
            continue
        page.goto(page.url.partition("docs/")[0] + path.relative_to(SITE).as_posix())
        boxes = "article .table-wrapper" + (", article pre" if screen == "desktop" else "")
        for text in page.evaluate(
            f"""[...document.querySelectorAll("{boxes}")]
            .filter(box => box.scrollWidth > box.clientWidth + 1)
            .filter(box => box.matches(".table-wrapper") || box.innerText.includes("dpcal "))
            .map(box => box.innerText.slice(0, 60))"""
        ):
            wide.append((path.relative_to(SITE).as_posix(), text))
    assert wide == []


def test_the_root_leads_to_the_front_page(opened):
    goto, _ = opened
    page = goto("")
    page.wait_for_url("**/docs/index.html")
    assert "dpcal" in page.title()
