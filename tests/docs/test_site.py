"""The site builds without warnings, and its links lead somewhere."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

DOCS = Path(__file__).parents[2] / "docs"


class Links(HTMLParser):
    """Addresses and ids of a page."""

    def __init__(self):
        super().__init__()
        self.addresses, self.sources, self.ids = [], [], set()

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.addresses.append(value)
                if name == "src" or tag == "link":
                    self.sources.append(value)


def read(path):
    links = Links()
    links.feed(path.read_text(encoding="utf-8"))
    return links


def dead_links(site):
    """(page, address) of every link within the site whose file or anchor is not there."""
    pages = {path: read(path) for path in site.rglob("*.html")}
    dead = []
    for page, links in pages.items():
        for address in links.addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not target.exists() or (
                parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids
            ):
                dead.append((str(page.relative_to(site)), address))
    return dead


@pytest.mark.slow
def test_site_builds_without_warnings_or_dead_links(tmp_path):
    """One build, because it takes a while: no warning, no dead link, and nothing that other hosts must serve."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    site = tmp_path.resolve()
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    assert dead_links(site) == []
    reference = (site / "reference" / "index.html").read_text()
    assert 'href="../py-modindex.html"' in reference
    assert 'href="../genindex.html"' in reference
    assert not list(site.rglob("_sources/**/*.*"))  # no copies of pages that nothing links to
    assert [address for page in pages for address in read(page).sources if urlsplit(address).netloc] == []


def test_dead_links_are_recognised(tmp_path):
    (tmp_path / "index.html").write_text('<p id="a"></p><a href="#a"></a><a href="#b"></a><a href="gone.html"></a>')
    assert dead_links(tmp_path.resolve()) == [("index.html", "#b"), ("index.html", "gone.html")]
