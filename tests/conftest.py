"""What holds for every test: random problems are often infeasible, and machines busy; neither is a fault."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "shoal", suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow], deadline=None
)
settings.load_profile("shoal")
