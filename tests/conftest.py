"""Settings for all tests: how fast a machine is decides nothing, for they also run under sanitizers and line tracing."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("xsift", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("xsift")
