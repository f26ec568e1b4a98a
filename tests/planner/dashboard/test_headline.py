"""The sentence that says a plan in short: what is owned is kept, not bought; of a plan that is adapted later, what to sign."""

import pytest

from planner.dashboard import answers, deciding, headline, sources
from planner.messages import languages
from planner.plan import Plan
from planner.report.locale import Words
from tests.planner.report.outputs.test_adapt import adapting


def test_what_is_owned_is_kept_and_not_bought():
    plan, t = sources.plan_of_example("across_sites"), Words("en")
    said = headline.in_short(plan, t)
    assert "buy 20 DGX H100 in us-texas; keep 32 DGX A100 80GB in us-virginia." in said
    rows = {row[t("column.system")]: row[t("column.how")] for row in answers.fleet_table(plan, t)}
    assert rows == {"DGX A100 80GB": "owned already", "DGX H100": "bought"}


def test_many_sites_are_a_list():
    said = headline.in_short(sources.plan_of_example("pathway_edge"), Words("en"))
    assert "in cn-beijing, cn-shanghai, cn-hangzhou" in said and "cn-chengdu and cn-chongqing." in said


@pytest.mark.parametrize("language", languages())
def test_a_plan_that_is_adapted_says_what_to_sign_and_what_it_is_expected_to_cost(language):
    t = Words(language)
    plain = sources.plan_of_example("quality")
    plan = Plan({**plain.document, "adaptation": adapting(plain).document["adaptation"]})
    found = plan.document["adaptation"]
    said, as_predicted = headline.in_short(plan, t, sure=False), headline.in_short(plain, t, sure=False)
    assert said != as_predicted
    assert all(f"{row['count']:,} " in said and row["system"] in said for row in found["sign"])
    assert headline.amount(found["fresh"]["cost"], headline.currency(plan), t) in said


def test_the_cost_of_a_plan_that_is_adapted_lies_within_its_range():
    plan, t = adapting(sources.plan_of_example("quality")), Words("en")
    metric, words = deciding.cost_metrics(plan, t)[-1]
    assert metric.value == "3M" and words == "2M – 4M"


def test_systems_signed_for_several_dates_are_named_once():
    document = adapting(sources.plan_of_example("quality")).document
    row = document["adaptation"]["sign"][0]
    document["adaptation"]["sign"] = [row, {**row, "count": 4, "from_s": 86400.0}]
    assert "sign 15 DGX H100 in here, and decide" in headline.in_short(Plan(document), Words("en"))
