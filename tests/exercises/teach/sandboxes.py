"""Tests that need the sandbox of `minflow exercises grade`. In CI its absence is an error."""

import os

import pytest

from minflow.exercises.grading import sandbox

PROBLEM = sandbox.problem()
REQUIRED = os.environ.get("MINFLOW_SANDBOX") == "required"
TRUST = ["--trust"] if PROBLEM and not REQUIRED else []  # for tests of `grade` that are not about the sandbox
needs_sandbox = pytest.mark.skipif(bool(PROBLEM) and not REQUIRED, reason=PROBLEM)
