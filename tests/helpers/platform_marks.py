"""Tests of what a platform lacks are left out there."""

from __future__ import annotations

import sys

import pytest

links = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
