"""Print a plan on one page: what to obtain and where, how it runs, what it costs, what binds, what comes next, what it rests on.

A page is a column of blocks with as many entries as it has room for. Not here: how they are set (`planner.report.paper`), the
sentences that open the page (`planner.report.story`), and the full report (`planner.report.report`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from catalog.units import show
from planner.messages import DEFAULT, Said, after_each_other, commas, listed, said, say, stopped, translated
from planner.plan import Plan, binds, is_by_the_bound
from planner.plan.rows.fleet import Deployment as DeploymentRow
from planner.plan.rows.fleet import FleetRow
from planner.plan.rows.framing import Assumption
from planner.plan.rows.money import Limit
from planner.plan.rows.points import Point
from planner.plan.rows.time import Slot
from planner.plan.rows.workloads import Workload
from planner.report import grades, jobs, money, notes, quality, robust
from planner.report.fleet import becomes, goes_back, peaks_of_sites, replica_words, ways_to_have
from planner.report.heads import left, right
from planner.report.limits import margin_words
from planner.report.load import length_pools
from planner.report.load.paths import path_lines
from planner.report.load.relays import load_lines
from planner.report.marginal_values import ValuedLimit, over_words, valued_limits, worth_number, worth_unit
from planner.report.outputs import adapt
from planner.report.outputs.chapters import diagnosis_chapters
from planner.report.paper import LINES, NAME_WIDTH, WIDTH, Block, Paper, filled, further, short
from planner.report.phases import span_words, windows_of
from planner.report.story import cost_of_kinds, costs_of_sites, had, story
from planner.report.why import coverage, explanations, looser, oldest, ratios
from planner.report.why.verdict import opening_sentences
from planner.report.words import between, figure_words, status_words

Deployment = tuple[str, str, str, tuple[str, ...]]  # workload, site, systems, and how each pool runs

STORY_LINES = 2  # lines of each sentence that opens the page
NAMED_SITES = 3  # sites named for a kind of system; further ones are counted
NAMED_PLACES = 8  # sites of a national plan that have a line each before other tables have further ones
LONG_NAME = 40  # columns of a system with its site
CARRIES = 0.01  # share of the objective: assumptions with a smaller share carry little


def one_page(plan: Plan, width: int = WIDTH, styled: bool = False, language: str = DEFAULT) -> str:
    """Write a plan in a language, in at most 58 lines and `width` columns, 100 at most; `styled` sets headings in bold by the escapes of a terminal.

    The page keeps to 58 lines from 80 columns on. On fewer, lines wrap further and blocks keep at least one entry each.
    """
    paper = Paper(min(width, WIDTH), styled, language)
    ended_by = plan.document["solver"].get("ended_by")
    opening = [
        *paper.text(plan.document["name"], "bold", most=1),
        *paper.text(_verdict(plan, language), most=3),
        *_opening(plan, paper),
    ]
    closing = [
        *(paper.text(say("page.divisible"), most=1) if _is_divided(plan) else ()),
        *(paper.text(say(f"page.ended_by.{ended_by}"), most=1) if ended_by in ("time", "memory") else ()),
        *(paper.text(odd, most=1) if (odd := ratios.contradictions(plan)) else ()),
        *(paper.text(covered, most=1) if (covered := coverage.short_words(plan)) else ()),
        *paper.text(say("page.full"), most=1),
    ]
    room = LINES - len(opening) - len(closing) - 1
    return "\n".join([*opening, *filled(paper, _blocks(plan, language), room), "", *closing]) + "\n"


def _verdict(plan: Plan, language: str) -> str:
    """State value, proof, what fewer parts cost, and what was paid for confidence; why there is no plan where there is none."""
    if not plan.has_answer:
        return status_words(plan)
    told = [*opening_sentences(plan, language), translated(robust.chosen_words(plan), language)]
    sentences = [stopped(f"{sentence[0].upper()}{sentence[1:]}") for sentence in told if sentence]
    return translated(after_each_other(sentences), language)


def _is_divided(plan: Plan) -> bool:
    """Tell whether the plan serves with fractions of replicas that the spec did not ask for."""
    asked = (plan.document["spec"].get("solver") or {}).get("replicas", "auto")
    return plan.has_answer and plan.document.get("replicas") == "divisible" and asked != "divisible"


def _opening(plan: Plan, paper: Paper) -> list[str]:
    """Set how sure the plan is, and the story: of each sentence the clauses that fit, the first in any case."""
    lines: list[str] = []
    sure = robust.sure_clauses(plan)
    first = [(robust.QUESTION, sure), (robust.LATER, robust.later_clauses(plan, short=True))]
    for question, clauses in [*(each for each in first if each[1]), *adapt.story(plan), *story(plan)]:
        told = ""
        for clause in clauses:
            longer = listed([told, clause]) if told else say("list.colon", question=question, clauses=clause)
            if not told or len(paper.text(stopped(longer))) <= STORY_LINES:
                told = longer
        lines += paper.text(stopped(told), most=STORY_LINES)
    return ["", *lines] if lines else []


def _blocks(plan: Plan, language: str) -> list[Block]:
    """List the blocks that have something to say."""
    if not plan.has_answer:
        told = [
            Block(heading, (), [(sentence,) for sentence in sentences], further(len(sentences)))
            for heading, sentences in diagnosis_chapters(plan, language)
        ]
        return [block for block in (*told, _understood(plan, language)) if block.entries]
    found = (
        _understood(plan, language),
        _waiting(plan),
        *adapt.blocks(plan),
        _architectures(plan),
        _pools(plan),
        _obtained(plan),
        _places(plan),
        _owned(plan),
        _rented(plan),
        _runs(plan),
        _paths(plan),
        _relays(plan),
        _jobs(plan),
        money.workloads(plan),
        grades.block(plan),
        money.costs(plan),
        money.earnings(plan),
        _binding(plan),
        _looser(plan),
        _next(plan),
        _rests_on(plan),
    )
    return [block for block in found if block.entries]


# -- what to obtain, and how it runs -----------------------------------------------------------------------------------


def _obtained(plan: Plan) -> Block:
    """List each kind of system and way to obtain it, with its count, part of the cost and sites."""
    kinds: dict[tuple[str, str], list[FleetRow]] = defaultdict(list)
    for row in plan.document["fleet"]:
        kinds[row["system"], row["how"]].append(row)
    costs, total, ways = cost_of_kinds(plan), plan.totals["cost"], ways_to_have(plan)
    entries = [
        (
            system,
            ways[system, how],
            say("fleet.tokens_per_s", count=most_at_once(rows)) if rows[0].get("unit") else f"{most_at_once(rows):,}",
            f"{costs.get((system, how), 0.0) / total:.1%}" if total else "",
            _where(plan, rows),
        )
        for (system, how), rows in sorted(kinds.items(), key=lambda item: -costs.get(item[0], 0.0))
    ]
    rest, columns = further(len(entries)), (left("how"), right("count"), right("of_the_cost"), left("where"))
    return Block(adapt.fleet_heading(plan, "heading.obtained"), columns, entries, rest, least=3)


def _places(plan: Plan) -> Block:
    """List the sites of a fleet that stands at more than its kinds can name: systems, power at the peak of each, and part of the cost."""
    held: dict[str, list[FleetRow]] = defaultdict(list)
    for row in plan.document["fleet"]:
        if not row.get("unit"):
            held[row["site"]].append(row)
    if len(held) <= NAMED_SITES + 1:
        return Block(say("heading.places"), (), [])
    costs, power, total = costs_of_sites(plan), peaks_of_sites(plan), plan.totals["cost"]
    entries = [
        (
            site,
            f"{most_at_once(held[site]):,}",
            show(power[site], "W") if site in power else "",
            f"{costs[site] / total:.1%}" if total else "",
        )
        for site in sorted(held, key=lambda site: -costs[site])
    ]
    columns = (right("systems"), right("power_at_peak"), right("of_the_cost"))
    return Block(say("heading.places"), columns, entries, further(len(entries)), least=NAMED_PLACES)


def _waiting(plan: Plan) -> Block:
    """Say which jobs are done after their deadlines."""
    entries = [(sentence,) for sentence in jobs.waiting(plan)]
    return Block(explanations.WAITING, (), entries, further(len(entries)), least=4)


def _jobs(plan: Plan) -> Block:
    """Say how each job runs, and how much slack it has."""
    entries = [(sentence,) for sentence in jobs.runs(plan)]
    return Block(say("heading.jobs"), (), entries, further(len(entries)), least=2)


def _understood(plan: Plan, language: str) -> Block:
    """Say how the spec was understood, and what in it is at odds with known figures."""
    entries = [(sentence,) for sentence in notes.sentences(plan, language)]
    return Block(notes.HEADING, (), entries, further(len(entries)))


def _architectures(plan: Plan) -> Block:
    """Say which architecture answers where the plan chose it."""
    entries = [(sentence,) for sentence in quality.sentences(plan)]
    return Block(quality.HEADING, (), entries, further(len(entries)), least=3)


def _pools(plan: Plan) -> Block:
    """Say at which prompt lengths workloads are divided, what that saves, and where the router sends a request."""
    entries = [(sentence,) for sentence in length_pools.sentences(plan)]
    return Block(length_pools.HEADING, (), entries, further(len(entries)), least=3)


def _owned(plan: Plan) -> Block:
    """Say what becomes of the systems that are owned already."""
    entries = becomes(plan)
    return Block(say("heading.owned"), (left(""),), entries, further(len(entries)), name_width=LONG_NAME)


def _rented(plan: Plan) -> Block:
    """Say what becomes of the systems that are rented already."""
    entries, heading = goes_back(plan), say("rented.heading")
    return Block(heading, (left(""),), entries, further(len(entries)), name_width=LONG_NAME)


def most_at_once(rows: Sequence[FleetRow]) -> int:
    """Count the most systems that rows of the fleet hold in one window; rows without windows hold theirs throughout.

    >>> most_at_once([{"count": 3, "window": None, "windows": [0, 1]}, {"count": 4, "window": None, "windows": [2, 3]}])
    4
    """
    spans = [(row["count"], windows_of(row)) for row in rows]
    starts = [first for _, span in spans if span for first in span[:1]] or [0]
    totals = [sum(count for count, span in spans if span is None or span[0] <= at <= span[1]) for at in starts]
    return int(max(totals))


def _where(plan: Plan, rows: Sequence[FleetRow]) -> str:
    """List the sites with their counts, the largest first, and when each obtains them."""
    parts: dict[tuple[str, str], int] = defaultdict(int)
    for site, count, span, obtained in _spans(rows):
        parts[obtained or span_words(plan, span), site] += count
    ranked = sorted(parts.items(), key=lambda item: -item[1])
    together = ranked[0][0][0] if len({when for when, _ in parts}) == 1 else ""
    named, rest = (ranked, []) if len(ranked) <= NAMED_SITES + 1 else (ranked[:NAMED_SITES], ranked[NAMED_SITES:])
    words = [
        say("where.site_when", site=short(site), count=count, when=_shortened(when))
        if when and not together
        else say("where.site", site=short(site), count=count)
        for (when, site), count in named
    ]
    if rest:
        words.append(say("where.more_sites", sites=f"{len(rest)}", count=sum(count for _, count in rest)))
    hours = [running for row in rows for running in row.get("running", ())]
    by_hour = [say("hourly.runs", least=min(hours), most=max(hours))] if len(set(hours)) > 1 else []
    where = listed([commas(words), *by_hour])
    return say("list.colon", question=_shortened(together), clauses=where) if together else where


def _shortened(when: str) -> str:
    """Cut a name of a phase to the width of a column; dates of ours stay whole."""
    return when if isinstance(when, Said) else short(when)


def _spans(rows: Sequence[FleetRow]) -> list[tuple[str, int, tuple[int, int] | None, str]]:
    """List (site, count, windows, phase that obtains it); windows that follow each other with one count are one span."""
    spans: list[tuple[str, int, tuple[int, int] | None, str]] = []
    for row in sorted(rows, key=lambda row: (row["site"], windows_of(row) or (0, 0))):
        span, obtained = windows_of(row), row.get("obtained") or ""
        site, count, before, _ = spans[-1] if spans else ("", 0, None, "")
        follows = span is not None and before is not None and before[1] + 1 == span[0] and not obtained
        if span and before and follows and (site, count) == (row["site"], row["count"]):
            spans[-1] = site, count, (before[0], span[1]), ""
        else:
            spans.append((row["site"], row["count"], span, obtained))
    return spans


def _runs(plan: Plan) -> Block:
    """List the deployments: the replicas of one layout of a workload at a site, with their share of its work."""
    points = {point["id"]: point for workload in plan.document["workloads"] for point in workload["points"]}
    by_name = {
        point["id"]: _deployment(workload, point)
        for workload in plan.document["workloads"]
        for point in workload["points"]
    }
    whole = {row["point"]: row for row in plan.document.get("deployments", ())}
    work: dict[str, float] = defaultdict(float)
    merged = {deployment: [0.0, 0.0, 0.0] for deployment in by_name.values()}
    by_point: dict[str, float] = defaultdict(float)
    for row in plan.document["schedule"]:
        at_once: dict[Deployment, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for name in {**row["active"], **row.get("resident", {})}:
            point, deployment = points[name], by_name[name]
            done = row["active"].get(name, 0.0) * row["seconds"] * point["capacity"]
            work[deployment[0]] += done
            merged[deployment][0] += done
            by_point[name] += done
            for at, part in enumerate(_held(point, row, whole.get(name))):
                at_once[deployment][at] += part
        for deployment, (replicas, systems) in at_once.items():
            _, most, held = merged[deployment]
            merged[deployment][1:] = max(most, replicas), max(held, systems)
    for deployment, sums in merged.items():
        sums[0] /= work[deployment[0]] or 1.0
    replica = {by_name[name]: points[name] for name in sorted(points, key=lambda name: by_point[name])}
    ranked = _each_workload_first(merged, {row["name"]: row["cost"] for row in plan.document["workloads"]})
    entries = [
        (
            *deployment[:3],
            f"{replicas:,.4g}",
            f"{held:,.4g}",
            f"{share:.0%}",
            replica_words(replica[deployment]["pools"]),
        )
        for deployment, (share, replicas, held) in ranked
    ]
    names = (left("site"), left("system"), right("replicas"), right("systems"), right("work"), left("a_replica"))
    return Block(
        say("heading.points"),
        names,
        entries,
        lambda shown: _others(ranked[shown:]),
        least=2,
        wraps=False,
    )


def _paths(plan: Plan) -> Block:
    """Say over which paths pools exchange KV caches or weights."""
    lines = path_lines(plan)
    return Block("", (), [(line,) for line in lines], further(len(lines)))


def _relays(plan: Plan) -> Block:
    """Say how often systems load other weights in a day, and for which deployments."""
    lines = load_lines(plan)
    return Block("", (), [(line,) for line in lines], further(len(lines)))


def _others(rows: Sequence[tuple[Deployment, list[float]]]) -> str:
    """Name further deployments with their shares of the work of their workloads; deployments of one site and the same systems are added up."""
    shares: dict[tuple[str, str, str], float] = defaultdict(float)
    for (workload, site, systems, _), (share, *_) in rows:
        shares[workload, site, systems] += share
    named = [
        say("page.other", workload=workload, site=site, system=systems, share=f"{share:.0%}")
        for (workload, site, systems), share in shares.items()
    ]
    return say("page.others", count=len(rows), names=commas(named))


def _each_workload_first(
    rows: dict[Deployment, list[float]], costs: dict[str, float]
) -> list[tuple[Deployment, list[float]]]:
    """Order the deployments by their part of the cost, the largest of each workload before all others."""
    ranked = sorted(rows.items(), key=lambda item: -item[1][0] * costs[item[0][0]])
    first = {deployment[0]: deployment for deployment, _ in reversed(ranked)}
    return sorted(ranked, key=lambda item: first[item[0][0]] != item[0])


def _deployment(workload: Workload, point: Point) -> Deployment:
    """Identify the deployment of a point: workload, site, systems, and how each pool runs, whatever its number of workers."""
    systems = " + ".join(dict.fromkeys(pool["system"] for pool in point["pools"]))
    runs = tuple(
        str(
            [
                pool.get(key)
                for key in ("role", "system", "precision", "kv_precision", "waiting", "encoding", "layout", "batch")
            ]
        )
        for pool in point["pools"]
    )
    return workload["name"], point["site"], systems, (str(point.get("power_cap")), *runs)


def _held(point: Point, slot: Slot, deployment: DeploymentRow | None) -> tuple[float, float]:
    """Return the replicas of a point in a slot and the systems that they occupy: whole ones where the plan has its deployment."""
    if deployment is not None:
        workers = slot.get("resident", {}).get(point["id"], [0] * len(deployment["pools"]))
        pairs = list(zip(workers, deployment["pools"]))
        replicas: float = min(count // pool["workers_per_replica"] for count, pool in pairs)
        return replicas, sum(count * pool["systems_per_worker"] for count, pool in pairs)
    replicas = slot["active"].get(point["id"], 0.0)
    return replicas, replicas * sum(pool["systems_per_replica"] for pool in point["pools"] if pool["role"] != "api")


# -- what bounds it, and what it rests on ------------------------------------------------------------------------------


def _binding(plan: Plan) -> Block:
    """List what one more of each binding limit is worth, and the binding limits of which more is worth nothing."""
    valued = valued_limits(plan)
    entries = [
        (_whose(limit), worth_number(plan, limit.gain), _to_this_fleet(plan, limit.row, limit.fixed))
        for limit in valued
    ]
    named = {limit.row["name"] for limit in valued}
    entries += [
        (said(row, "name"), "", "") for row in plan.document["limits"] if binds(row) and row["name"] not in named
    ]
    if not entries:
        entries = [(say("page.nothing_used_up"), "", "")]
    columns = (right("worth_over", unit=worth_unit(plan), over=over_words(plan)), right("with_this_fleet"))
    rest = further(len(entries))
    return Block(
        say("heading.binding"),
        columns,
        entries,
        rest,
        least=2,
        name_width=2 * NAME_WIDTH,
        wraps=False,
    )


def _looser(plan: Plan) -> Block:
    """Say which latency limits are worth loosening, and what that is worth."""
    entries = [(sentence,) for sentence in looser.sentences(plan)]
    return Block(looser.HEADING, (), entries, further(len(entries)), least=2)


def _whose(limit: ValuedLimit) -> str:
    """Name one more of a limit, and say where its worth is that of the bound, as the plan itself was too large for it."""
    return say("page.by_the_bound", more=limit.words) if is_by_the_bound(limit.row) else limit.words


def _to_this_fleet(plan: Plan, row: Limit, gain: float) -> str:
    """Write what one more is worth without further systems; empty where nobody computed it."""
    return "" if row["marginal_value"] is None else worth_number(plan, gain if gain > 0 else 0.0)


def _next(plan: Plan) -> Block:
    """List the unused systems from the nearest to being used on; sites of which the same is said share an entry."""
    told: dict[str, list[str]] = defaultdict(list)
    for row in sorted(
        plan.document["runner_up"], key=lambda row: float("inf") if row["margin"] is None else row["margin"]
    ):
        words = margin_words(row)
        if row["system"] is not None:
            words = say("page.next", how=had(row["how"] or ""), system=row["system"], words=words)
        told[words].append(row["site"])
    entries = [(_named_sites(sites), words) for words, sites in told.items()]
    return Block(say("heading.next"), (left(""),), entries, further(len(entries)))


def _named_sites(sites: Sequence[str]) -> str:
    return commas(sites) if len(sites) < NAMED_SITES else say("page.sites", count=f"{len(sites)}")


def _rests_on(plan: Plan) -> Block:
    """List the error of the predicted capacity, the oldest prices, and the assumptions that carry most of the objective."""
    rows = sorted(
        (row for row in plan.document["assumptions"] if (row["share"] or 0.0) >= CARRIES),
        key=lambda row: -(row["share"] or 0.0),
    )
    alike: dict[tuple[str, ...], list[Assumption]] = defaultdict(list)
    for row in rows:
        part = f"{row['share']:.1%}"
        alike[_without_year(row["path"]), part, said(row, "reason")].append(row)
    entries = [
        (path, f"{_value(same[0])} … {_value(same[-1])}" if len(same) > 1 else _value(same[0]), part, reason)
        for (path, part, reason), same in alike.items()
    ]
    columns = (left("value"), right("share"), left("because"))
    first = [*oldest.entries(plan)[:1], *_predicted(plan), *oldest.entries(plan)[1:]]
    return Block(say("heading.rests_on"), columns, [*first, *entries], further(len(entries) + len(first)), least=2)


def _without_year(path: str) -> str:
    """Name the curve of an assumption that is stated year by year.

    >>> _without_year("economics.residual.3y"), _without_year("systems.life")
    ('economics.residual', 'systems.life')
    """
    curve, _, last = path.rpartition(".")
    return curve if last.endswith("y") and last[:-1].isdigit() else path


def _value(row: Assumption) -> str:
    return figure_words(row["value"], row["unit"])


def _predicted(plan: Plan) -> Iterator[tuple[str, ...]]:
    """State the 80 % interval of the capacity of the dearest workload's points, as shares of the predicted one."""
    for workload in sorted(plan.document["workloads"], key=lambda row: -row["cost"])[:1]:
        pairs = [
            (low / point["capacity"], high / point["capacity"])
            for point in workload["points"]
            if point["interval_80"] and "capacity" in point["interval_80"] and point["capacity"]
            for low, high in [point["interval_80"]["capacity"]]
            if low is not None and high is not None
        ]
        if pairs:
            low, high = min(pair[0] for pair in pairs), max(pair[1] for pair in pairs)
            yield (
                say("page.capacity", workload=workload["name"]),
                between(f"{low:.2f}", f"{high:.2f}"),
                "",
                say("page.of_predicted"),
            )
