"""The address of a page: its step and its project, so that back, forward and bookmarks work.

No value of the data is in an address: a project has a random name.
"""

from __future__ import annotations

import re

START, PROJECT = "start", "project"
STEP_NAMES = ("data", "diagnose", "negotiate", "compare", "release")
PATHS = (
    "/",
    *(f"/{name}" for name in (*STEP_NAMES, "settings")),
    "/project/{project}",
    *(f"/project/{{project}}/{name}" for name in (*STEP_NAMES, "settings")),
)
_PATH = re.compile(rf"(?:/project/([0-9a-f]{{16}}))?(?:/({'|'.join(STEP_NAMES)}|settings))?/?")


def path_of(step: str, project: str | None) -> str:
    """Return the address of a step, in a saved project or without one.

    >>> path_of("start", None), path_of("release", None), path_of("data", "0123456789abcdef")
    ('/', '/release', '/project/0123456789abcdef/data')
    """
    if step == START:
        return "/"
    prefix = f"/project/{project}" if project else ""
    return f"{prefix}/{'settings' if step == PROJECT else step}"


def parse_path(path: str) -> tuple[str | None, str | None]:
    """Return the project and the step that an address names.

    >>> parse_path("/project/0123456789abcdef/release"), parse_path("/compare"), parse_path("/")
    (('0123456789abcdef', 'release'), (None, 'compare'), (None, None))
    """
    match = _PATH.fullmatch(path)
    if match is None:
        return None, None
    return match[1], PROJECT if match[2] == "settings" else match[2]
