"""The small world of these tests."""

import pytest

from tests.services.stepfunctions.machinery import Machinery


@pytest.fixture
def world() -> Machinery:
    return Machinery()
