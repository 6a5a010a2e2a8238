"""Small ensembles for reports, and a look into a page without a browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
from ensembles import random_ensemble

import veridical as vd

HOSTILE_NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</script></style></svg><b>bold</b>",
    "$\\frac{1}{0$ & {{ 7 * 7 }} \\N{DIGIT ONE}",
    "\x00\x1b[31m\ud800 日本語",
)


def labelled_ensemble(n_sources=4, n_samples=400, n_classes=5, *, sharpness=1.0, seed=0, **names):
    """Sources around a common opinion, with labels that are drawn from it: at sharpness 1 it is calibrated."""
    rng = np.random.default_rng(seed)
    opinion = rng.dirichlet(np.full(n_classes, 0.6), size=n_samples)
    labels = (rng.random(n_samples)[:, None] > np.cumsum(opinion, axis=1)).sum(axis=1).clip(0, n_classes - 1)
    shown = opinion**sharpness
    shown /= shown.sum(axis=1, keepdims=True)
    probs = 0.97 * shown + 0.03 * random_ensemble(rng, n_sources, n_samples, n_classes)
    return vd.Predictions(probs, labels, **names)


class Page(HTMLParser):
    """Tags, ids, attributes and text of a page, as a browser's parser would see them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.text: list[str] = []
        self._inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, key, value) for key, value in attrs]
        if tag in ("script", "style"):
            self._inside.append(tag)

    def handle_endtag(self, tag):
        if self._inside and tag == self._inside[-1]:
            self._inside.pop()

    def handle_data(self, data):
        if not self._inside:
            self.text.append(data)

    def values(self, key: str) -> list[str | None]:
        """All values of one attribute."""
        return [value for _, name, value in self.attributes if name == key]


def embedded_json(html: str) -> str:
    """The numbers as the page carries them."""
    match = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', html, re.DOTALL)
    assert match is not None
    return match[1]
