"""SNS's recorded answers, alone and with queues; the cases that cannot hold here are listed with their reason."""

from pathlib import Path

from muster.services import sns, sqs
from tests.conformance.services import cases_with, wrong

EXCEPTIONS: dict[str, str] = {}


def test_sns_answers_as_recorded(conformance: Path) -> None:
    ours = cases_with(conformance, "sns")
    assert ours
    assert EXCEPTIONS.keys() <= {case["case"] for case in ours}
    services = [sns.SERVICE, sqs.SERVICE]
    assert [one for case in ours if case["case"] not in EXCEPTIONS for one in wrong(case, services)] == []
