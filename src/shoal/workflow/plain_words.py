"""Descriptions of models, diagnosis questions and terms, for readers who do not program."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from shoal.files.yaml import load_yaml
from shoal.models import MODELS
from shoal.wording import Audience, option_name

# An option in braces is replaced by its name in the interface.
QUESTION_SENTENCES = {
    "1": "Is the table k-anonymous for the columns? Needs {k}.",
    "2": "For which k is it k-anonymous?",
    "3": "For which sets of columns is it k-anonymous? Only sets that no larger one contains, the largest "
    "first. Needs {k}.",
    "4": "Which k does every set of columns have?",
    "5": "Question 1 after suppression. Needs {k} and {suppression_limit}.",
    "6": "Question 2 after suppression. Needs {suppression_limit}.",
    "7": "Question 3 after suppression. Needs {k} and {suppression_limit}.",
    "8": "Question 4 after suppression. Needs {suppression_limit}.",
    "9": "How many records must be suppressed for k? Needs {k}.",
    "10": "Question 9 for every set of columns. Needs {k}.",
    "11": "How many records must be suppressed for each k up to {most}?",
    "12": "Question 11 for every set of columns. Needs {most}.",
    "unsafe": "Which smallest sets of columns, known from outside, break k? Needs {k}.",
    "rows": "Which records are in classes smaller than k? Writes their numbers to {rows}. Needs {k}.",
    "suggest": "What does each column look like? Writes a first policy.",
}
_WEB = {"most": "the largest k", "rows": "a file", "suppression_limit": "a suppression limit"}


@dataclass(frozen=True)
class Term:
    """A term of the glossary; `page` is the page of the documentation about it."""

    term: str
    meaning: str
    page: str | None = None


@cache
def glossary() -> tuple[Term, ...]:
    """Return the terms that all interfaces use, in alphabetical order."""
    text = (files("shoal") / "data" / "glossary.yaml").read_text(encoding="utf-8")
    return tuple(Term(name, **entry) for name, entry in load_yaml(text).items())


def model_sentence(name: str) -> str:
    """Return what a privacy model requires, in a sentence for readers who do not program."""
    return MODELS.load(name).plain_summary or MODELS.summary(name)


def question_sentence(question: str, audience: Audience) -> str:
    """Return the sentences about a question; options are written as in the interface of the audience.

    >>> question_sentence("5", "cli")
    'Question 1 after suppression. Needs --k and --suppression-limit.'
    >>> question_sentence("5", "web")
    'Question 1 after suppression. Needs k and a suppression limit.'
    """
    names = _WEB if audience == "web" else {}
    return re.sub(
        r"{(\w+)}",
        lambda name: names.get(name[1], option_name(name[1], audience)),
        QUESTION_SENTENCES[question],
    )
