"""How Hypothesis runs in all tests: no example has to be done in a given time, which a busy machine would not keep."""

from hypothesis import HealthCheck, settings

settings.register_profile("kith", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kith")
