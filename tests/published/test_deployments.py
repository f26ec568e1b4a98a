"""Six published deployments: what the search chooses on the same chips at the same limits does no less than the layout that was published."""

from __future__ import annotations

import pytest

from benchmarks.deployments import DEPLOYMENTS, compared, output_tokens_per_s


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda each: each.name)
def test_the_chosen_layout_does_no_less_than_the_published_one(deployment):
    stated, chosen = compared(deployment)
    assert chosen["requests_per_s"] >= 0.99 * stated["requests_per_s"]
    assert chosen["meets_slo"] and chosen["chips_used"] <= deployment.chips
    predicted = output_tokens_per_s(deployment, stated)
    assert 0.5 < predicted / deployment.published < 1.5  # how far each is off is in benchmarks/deployments.md
