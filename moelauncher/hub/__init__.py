"""How a model is fetched: the only room that imports ``huggingface_hub``.

The library would also tell its server which programs run it, and ask for a list of them first: off,
unless the user's environment says otherwise. It reads this when it is imported.
"""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
