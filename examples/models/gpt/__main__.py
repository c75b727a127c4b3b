"""``python -m examples.models.gpt``."""

from __future__ import annotations

import sys

from examples.models.gpt.train import main

sys.exit(main())
