"""Settings for all tests. None depends on how fast the machine is: they also run with sanitizers and line tracing."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("xsift", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("xsift")
