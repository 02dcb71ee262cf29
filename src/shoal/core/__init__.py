"""The core, which does not depend on plug-ins, engines or data frames."""
