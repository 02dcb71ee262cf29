"""shoal: every record swims in a shoal of at least k."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.analysing.compared import Utility
    from shoal.anonymize import anonymize
    from shoal.apply import apply
    from shoal.arx import Import, import_arx
    from shoal.attack import Attack, attack
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
    from shoal.risk import Risk, risk
    from shoal.study import Study, study
    from shoal.successive import Intersection, intersect
    from shoal.utility import utility
    from shoal.verify import Verification, verify

__all__ = [
    "Attack",
    "Comparison",
    "Diagnosis",
    "Import",
    "Intersection",
    "Measurement",
    "Policy",
    "Profile",
    "Recipe",
    "Release",
    "Risk",
    "Study",
    "Utility",
    "Verification",
    "anonymize",
    "apply",
    "attack",
    "check_hierarchies",
    "compare",
    "diagnose",
    "import_arx",
    "intersect",
    "measure",
    "profile",
    "report",
    "risk",
    "study",
    "utility",
    "verify",
]

# Loaded when first used, so that `shoal --help` does not wait for numpy and pydantic.
_HOMES = {
    "Attack": "attack",
    "Comparison": "comparison",
    "Diagnosis": "diagnosis",
    "Intersection": "successive",
    "Import": "arx",
    "Measurement": "measure",
    "Policy": "policy",
    "Profile": "profile",
    "Recipe": "recipe",
    "Release": "release",
    "Risk": "risk",
    "Study": "study",
    "Utility": "analysing.compared",
    "Verification": "verify",
    "anonymize": "anonymize",
    "apply": "apply",
    "attack": "attack",
    "check_hierarchies": "hierarchies",
    "compare": "compare",
    "diagnose": "diagnose",
    "intersect": "successive",
    "import_arx": "arx",
    "measure": "measure",
    "profile": "profile",
    "report": "report",
    "risk": "risk",
    "study": "study",
    "utility": "utility",
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
