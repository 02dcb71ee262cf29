"""shoal: every record swims in a shoal of at least k."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from shoal.integrations.arx.arx import Import, import_arx
    from shoal.policy.policy import Policy
    from shoal.workflow.attack.attack import Attack, attack
    from shoal.workflow.attack.successive import Intersection, intersect
    from shoal.workflow.compare.compare import compare
    from shoal.workflow.compare.comparison import Comparison
    from shoal.workflow.diagnosis.diagnose import diagnose
    from shoal.workflow.diagnosis.diagnosis import Diagnosis
    from shoal.workflow.first_policy import init
    from shoal.workflow.inspect import check_hierarchies
    from shoal.workflow.measure import Measurement, measure
    from shoal.workflow.profile.profile import Profile, profile
    from shoal.workflow.profile.study import Study, study
    from shoal.workflow.release.anonymize import anonymize, apply
    from shoal.workflow.release.recipe import Recipe
    from shoal.workflow.release.release import Release
    from shoal.workflow.report.report import report
    from shoal.workflow.risk.risk import Risk, risk
    from shoal.workflow.utility.utility import Utility, utility
    from shoal.workflow.verify import Verification, verify

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
    "__version__",
    "anonymize",
    "apply",
    "attack",
    "check_hierarchies",
    "compare",
    "diagnose",
    "import_arx",
    "init",
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
    "Attack": "workflow.attack.attack",
    "Comparison": "workflow.compare.comparison",
    "Diagnosis": "workflow.diagnosis.diagnosis",
    "Intersection": "workflow.attack.successive",
    "Import": "integrations.arx.arx",
    "Measurement": "workflow.measure",
    "Policy": "policy.policy",
    "Profile": "workflow.profile.profile",
    "Recipe": "workflow.release.recipe",
    "Release": "workflow.release.release",
    "Risk": "workflow.risk.risk",
    "Study": "workflow.profile.study",
    "Utility": "workflow.utility.utility",
    "Verification": "workflow.verify",
    "anonymize": "workflow.release.anonymize",
    "apply": "workflow.release.anonymize",
    "attack": "workflow.attack.attack",
    "check_hierarchies": "workflow.inspect",
    "compare": "workflow.compare.compare",
    "diagnose": "workflow.diagnosis.diagnose",
    "init": "workflow.first_policy",
    "intersect": "workflow.attack.successive",
    "import_arx": "integrations.arx.arx",
    "measure": "workflow.measure",
    "profile": "workflow.profile.profile",
    "report": "workflow.report.report",
    "risk": "workflow.risk.risk",
    "study": "workflow.profile.study",
    "utility": "workflow.utility.utility",
    "verify": "workflow.verify",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    value = getattr(import_module(f"shoal.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
