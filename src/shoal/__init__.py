"""shoal: every record swims in a shoal of at least k."""

from shoal.anonymize import Release, anonymize
from shoal.policy import Policy
from shoal.verify import Verification, verify

__all__ = ["Policy", "Release", "Verification", "anonymize", "verify"]
