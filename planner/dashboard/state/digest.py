"""Name documents by their contents."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(document: Any) -> str:
    """Hash a document, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]
