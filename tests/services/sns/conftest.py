import pytest

from tests.services.sns.parties import Parties


@pytest.fixture
def sns() -> Parties:
    return Parties()
