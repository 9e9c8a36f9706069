"""Property tests are judged by what they find, not by the time that a busy machine takes for one example.

They try the same examples in every run, so that a change is what turns one red; EXPLORE=1 looks for new ones.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("nodecare", deadline=None, derandomize="EXPLORE" not in os.environ, database=None)
settings.load_profile("nodecare")
