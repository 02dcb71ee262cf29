"""Pictures of every view of the studio, for the documentation and for review: `make shots`.

The documentation shows each view in a wide window, and a few in the narrow one and in the dark appearance.
`python tests/support/screenshots.py --review FOLDER` takes all views at every width, light and dark, whole.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from PIL import Image

from browser import SLOW, chromium, studio
from studio_views import PASSWORD, VIEWS, walk

HOME = Path(__file__).resolve().parents[2] / "docs" / "studio"
HEIGHTS = {1440: 900, 1024: 768, 390: 844}  # by width
SHOWN = {(1440, False): VIEWS, (1440, True): ("negotiate",), (390, False): ("data", "negotiate", "release")}

# Waits until nothing on the page has changed for two seconds.
_QUIET = """async () => {
  let last = performance.now();
  const begin = last;
  const watch = new MutationObserver(() => { last = performance.now(); });
  watch.observe(document.body, {childList: true, subtree: true, characterData: true, attributes: true});
  while (performance.now() - last < 2000 && performance.now() - begin < 60000)
    await new Promise((done) => setTimeout(done, 100));
  watch.disconnect();
}"""


def shoot(
    home: Path, *, width: int = 1440, dark: bool = False, views: tuple[str, ...] = VIEWS, whole: bool = False
) -> list[Path]:
    """Walk through the sample and take a picture of some views; return the files."""
    home.mkdir(parents=True, exist_ok=True)
    ending = f"{'' if width == 1440 else f'-{width}'}{'-dark' if dark else ''}"
    pictures = []
    with studio("--projects", "projects", password=PASSWORD) as started, chromium() as browser:
        page = browser.new_page(
            viewport={"width": width, "height": HEIGHTS[width]}, color_scheme="dark" if dark else "light"
        )
        page.set_default_timeout(SLOW)
        for name in walk(page, started()):
            if name in views:
                page.evaluate("window.scrollTo(0, 0)")
                page.evaluate(_QUIET)  # until the charts are drawn
                path = home / f"{name}{ending}.png"
                page.screenshot(path=path, full_page=whole)
                Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
                pictures.append(path)
            if len(pictures) == len(views):
                break
    return pictures


def side_by_side(pictures: list[Path], path: Path) -> None:
    """Put pictures of narrow windows into one, and remove them."""
    parts = [Image.open(picture).convert("RGB") for picture in pictures]
    gap = 10
    whole = Image.new("RGB", (sum(part.width + gap for part in parts) - gap, parts[0].height), "white")
    left = 0
    for part, picture in zip(parts, pictures, strict=True):
        whole.paste(part, (left, 0))
        left += part.width + gap
        picture.unlink()
    whole.quantize(64).save(path, optimize=True)


if __name__ == "__main__":
    if "--review" in sys.argv:
        for width in HEIGHTS:
            for dark in (False, True):
                shoot(Path(sys.argv[-1]), width=width, dark=dark, whole=True)
    else:
        for (width, dark), views in SHOWN.items():
            pictures = shoot(HOME, width=width, dark=dark, views=views)
            if width == 390:
                side_by_side(pictures, HOME / "narrow.png")
