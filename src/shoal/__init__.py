"""shoal: every record swims in a shoal of at least k."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.anonymize import anonymize
    from shoal.apply import apply
    from shoal.compare import compare
    from shoal.comparison import Comparison
    from shoal.diagnose import diagnose
    from shoal.diagnosis import Diagnosis
    from shoal.hierarchies import check_hierarchies
    from shoal.measure import Measurement, measure
    from shoal.policy import Policy
    from shoal.profile import Profile, profile
    from shoal.recipe import Recipe
    from shoal.release import Release
    from shoal.report import report
    from shoal.study import Study, study
    from shoal.verify import Verification, verify

__all__ = [
    "Comparison",
    "Diagnosis",
    "Measurement",
    "Policy",
    "Profile",
    "Recipe",
    "Release",
    "Study",
    "Verification",
    "anonymize",
    "apply",
    "check_hierarchies",
    "compare",
    "diagnose",
    "measure",
    "profile",
    "report",
    "study",
    "verify",
]

# Loaded when first used, so that `shoal --help` does not wait for numpy and pydantic.
_HOMES = {
    "Comparison": "comparison",
    "Diagnosis": "diagnosis",
    "Measurement": "measure",
    "Policy": "policy",
    "Profile": "profile",
    "Recipe": "recipe",
    "Release": "release",
    "Study": "study",
    "Verification": "verify",
    "anonymize": "anonymize",
    "apply": "apply",
    "check_hierarchies": "hierarchies",
    "compare": "compare",
    "diagnose": "diagnose",
    "measure": "measure",
    "profile": "profile",
    "report": "report",
    "study": "study",
    "verify": "verify",
}


class _Package(ModuleType):
    """Lets a function keep its name when the module of the same name is imported."""

    def __getattr__(self, name: str) -> object:
        if name not in _HOMES:
            message = f"module 'shoal' has no attribute {name!r}"
            raise AttributeError(message)
        return getattr(import_module(f"shoal.{_HOMES[name]}"), name)

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
