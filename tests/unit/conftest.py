"""Property tests are judged by what they find, not by the time that a busy machine takes for one example."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("nodecare", deadline=None)
settings.load_profile("nodecare")
