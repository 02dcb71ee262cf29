"""The transformer for scikit-learn pipelines."""

from shoal.integrations.sklearn import Anonymizer

__all__ = ["Anonymizer"]
