"""``python -m examples.digits``."""

from __future__ import annotations

import sys

from examples.digits.train import main

sys.exit(main())
