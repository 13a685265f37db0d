"""Make docs/report.png, the picture in README.md, from the report of the demo.

Run: python docs/photograph_report.py (needs the extra browser, and Chromium).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).with_name("report.png")
WIDTH, HEIGHT = 1200, 990


def main() -> None:
    """Make the report, open it in Chromium, and save a screenshot."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "demo.html"
        command = [sys.executable, "-m", "recometer", "demo", "--report", str(page_file)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(page_file.as_uri())
        page.locator("[data-chart=leaderboard][data-state=drawn]").wait_for()
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
