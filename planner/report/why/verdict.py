"""State how far a plan is from the best possible one, and what its simplicity costs beside the best plan found."""

from __future__ import annotations

from planner.messages import DEFAULT, Message, listed, stopped, translated
from planner.plan import Plan
from planner.plan.rows.quality import BestFound, Simplicity
from planner.report.locale import Words
from planner.report.words import amount, more_words

ENDED = ("search", "time", "memory", "nodes")  # what ends a search short of the asked gap
OPTIMAL_GAP = 1e-6  # a gap below it is a solver's rounding


def proof_clauses(plan: Plan) -> list[str]:
    """List the bound of the best plan found, and by how much this plan is worse because it has fewer parts."""
    gap = plan.found_gap
    if gap is None:
        return [Message.of("verdict.unproven").text()]
    worse = _worse(plan)
    if plan.status == "optimal":
        proof = Message.of(_code("verdict.no_better", plan))
    elif worse is not None and gap <= OPTIMAL_GAP:
        proof = Message.of("verdict.best.optimal")
    else:
        proof = Message.of(_code("verdict.within", plan), gap=percent(gap))
        if worse is not None:
            proof = Message.of("verdict.best", proof=proof.text())
    told = [proof.text()]
    if plan.status == "limit" and "asked_gap" in plan.document["solver"]:
        told.append(Message.of("verdict.asked", gap=percent(float(plan.document["solver"]["asked_gap"]))).text())
    told += [] if worse is None else [worse.text()]
    step = _step_below(plan)
    if step and (worse is None or not worse.code.startswith("verdict.fewer_deployments")):
        step = Message.of("verdict.ladder", step=step).text()
    return [*told, step] if step else told


def opening_sentences(plan: Plan, language: str = DEFAULT) -> list[str]:
    """State value and proof of a plan with an answer, and what its fewer parts cost, a sentence each."""
    goal = {"min": plan.document["spec"].get("objective", {}).get("minimise") or "cost", "max": "throughput"}
    years = plan.document["spec"].get("horizon", {}).get("years", 1)
    over = Message.of("verdict.over.one") if years == 1 else Message.of("verdict.over.several", years=years)
    first = Message.of(
        f"verdict.{goal[plan.objective['sense']]}",
        amount=amount(plan.value), unit=plan.objective["unit"], over=over.text(), proof=_proof(plan).text(),
    )  # fmt: skip
    parts, step = _worse(plan), _step_below(plan)
    if step and (parts is None or not parts.code.startswith("verdict.fewer_deployments")):
        step = Message.of("verdict.ladder", step=step).text()
    second = translated(listed([*([] if parts is None else [parts.text()]), step]), language)
    return [first.text(language), *([f"{second[0].upper()}{second[1:]}"] if second else [])]


def _proof(plan: Plan) -> Message:
    """State how near to the optimum a plan is proven to be, and what ended the search where that is not as near as asked."""
    if plan.gap is None:
        return Message.of("verdict.unproven")
    if plan.status == "optimal" and plan.gap <= OPTIMAL_GAP:
        return Message.of(_code("verdict.proven_optimal", plan))
    proof, solver = Message.of(_code("verdict.proven", plan), gap=percent(plan.gap)), plan.document["solver"]
    ended = solver.get("ended_by")
    if plan.status != "limit" or ended not in ENDED or "asked_gap" not in solver:
        return proof
    asked = percent(float(solver["asked_gap"]))
    return Message.of("verdict.ended", proof=proof.text(), gap=asked, ended=Message.of(f"verdict.ended.{ended}").text())


def simplified_words(plan: Plan, t: Words) -> str:
    """State the bound of the best plan found and by how much this plan is worse; empty where it is the best one found."""
    if _worse(plan) is None:
        return ""
    told = t.phrase(stopped(listed(proof_clauses(plan))))
    return f"{told[0].upper()}{told[1:]}"


def percent(share: float) -> str:
    """Write a share with three significant digits, below a hundredth of a per cent with one.

    >>> percent(0.0096831), percent(0.2064), percent(0.0000577), percent(0.0)
    ('0.968%', '20.6%', '0.006%', '0%')
    """
    return f"{100 * share:.1g}%" if abs(share) < 1e-4 else f"{100 * share:.3g}%"


def _code(family: str, plan: Plan) -> str:
    """Return the code of a family that fits what the bound holds for."""
    return f"{family}.{plan.document['bound_of']}" if plan.document["bound_of"] in ("reduced", "fleet") else family


def _step_below(plan: Plan) -> str:
    """State what the next step of the ladder below the plan costs against the best plan found; empty where none is known."""
    row = plan.document.get("simplicity")
    below = [rung for rung in row.get("ladder", ()) if rung["deployments"] < row["deployments"]] if row else []
    if not below:
        return ""
    code = f"verdict.ladder.{'estimated' if below[0]['estimated'] else 'made'}.{plan.objective['sense']}"
    return Message.of(code, deployments=below[0]["deployments"], above=_lost(below[0]["above"], plan)).text()


def _lost(share: float, plan: Plan) -> str:
    """State by how much a plan is worse: a share that is lost of throughput, and one that comes on top of an amount."""
    return percent(share) if plan.objective["sense"] == "max" else more_words(share, percent(share))


def _worse(plan: Plan) -> Message | None:
    """State what having fewer parts than the best plan found costs, before systems were added to be surer; None where the plan is the best one.

    A plan may be worse without fewer parts: surer, or with jobs at other hours.
    """
    row = plan.document.get("simplicity")
    if row is None:
        return None
    best, sense = row["best"]["value"], plan.objective["sense"]
    gained = plan.document.get("confidence_gain")
    value = plan.value if gained is None else gained["value_before"]
    loss = abs(value - best) / abs(best) if best else 0.0
    told = {"loss": _lost(loss, plan)} if loss > OPTIMAL_GAP else {}
    before, after = _parts(row["best"]), _parts(row)
    saved = next((part for part in before if after[part] < before[part]), None)
    if saved is not None:
        code = f"verdict.fewer_{saved}.{sense}" if told else f"verdict.fewer_{saved}"
        return Message.of(code, before=before[saved], after=after[saved], **told)
    return Message.of(f"verdict.worse.{sense}", **told) if told else None


def _parts(row: Simplicity | BestFound) -> dict[str, int]:
    """Return the number of parts of a plan, in the order in which they are saved."""
    return {"deployments": row["deployments"], "kinds": row["kinds"], "sites": row["sites"]}
