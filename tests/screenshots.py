"""Screenshots of the five steps, for the documentation: `make shots`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from browser import chromium, studio
from PIL import Image

HOME = Path(__file__).resolve().parents[1] / "docs" / "studio"


def shoot(
    home: Path, *, dark: bool = False, width: int = 1280, height: int = 800, whole: bool = False
) -> None:
    """Walk through the sample and take a picture of each step."""
    home.mkdir(parents=True, exist_ok=True)
    ending = "-dark" if dark else ""
    with studio() as started, chromium() as browser:
        page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )

        def picture(name: str) -> None:
            page.wait_for_timeout(700)
            page.mouse.move(2, height - 2)
            path = home / f"{name}{ending}.png"
            page.screenshot(path=path, full_page=whole)
            Image.open(path).convert("RGB").quantize(200).save(path, optimize=True)

        page.goto(started())
        page.get_by_role("button", name="Open the sample").wait_for()
        picture("start")
        page.get_by_role("button", name="Open the sample").click()
        page.get_by_role("heading", name="Hierarchy of age").wait_for()
        picture("data")
        page.get_by_role("button", name="Diagnose", exact=True).first.click()
        page.get_by_text("Smallest unsafe sets").wait_for()
        picture("diagnose")
        page.locator("nav button", has_text="Negotiate").click()
        page.locator("[data-answer=exact]").wait_for()
        picture("negotiate")
        page.get_by_label("Suppressed, at most", exact=True).fill("0.5%")
        page.locator("[data-answer=none]").wait_for()
        picture("suggestions")
        page.get_by_role("button", name="As the policy").click()
        page.locator("[data-answer=exact]").wait_for()
        page.get_by_role("button", name="Take this").click()
        page.get_by_text("taken for the release").wait_for()
        page.locator("nav button", has_text="Compare").click()
        page.get_by_role("heading", name="Algorithms").wait_for()
        page.get_by_role("button", name="Compare", exact=True).last.click()
        page.get_by_role("heading", name="Loss by non-uniform-entropy").wait_for(timeout=6000)
        picture("compare")
        page.locator("nav button", has_text="Release").click()
        page.get_by_role("heading", name="What the release will do").wait_for()
        page.get_by_role("button", name="Release", exact=True).last.click()
        page.get_by_text("Verified: every model holds").wait_for()
        picture("release")


if __name__ == "__main__":
    shoot(
        Path(sys.argv[1]) if len(sys.argv) > 1 else HOME,
        dark="--dark" in sys.argv,
        whole="--whole" in sys.argv,
        width=1920 if "--wide" in sys.argv else 1280,
        height=1080 if "--wide" in sys.argv else 800,
    )
