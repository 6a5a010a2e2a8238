"""The picture of a report's top: ``python docs/figures/report_picture.py``; needs Chromium and its driver.

Browsers draw letters differently, so the picture is not compared by a test.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from selenium import webdriver

import veridical as vd

PICTURE = Path(__file__).parents[1] / "learn" / "report.png"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking")


def main() -> None:
    """Build the report of the shipped ensemble, and take a picture of its first screen."""
    options = webdriver.ChromeOptions()
    for flag in FLAGS:
        options.add_argument(flag)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        vd.build_report(vd.load_demo(), title="The shipped ensemble", out=page)
        browser = webdriver.Chrome(options=options)
        try:
            browser.set_window_size(1100, 1000)
            browser.get(page.as_uri())
            browser.save_screenshot(str(PICTURE))
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
