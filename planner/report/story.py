"""A plan told in sentences: why here, why this, on which line, why then. Read from the plan document alone, like the tables.

Each sentence states figures of the plan and the limit or price that they follow from. Not here: the tables (`planner.report.report`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from catalog.units import HOUR_S, MWH_J, YEAR_S, show
from planner.plan import BY_THE_BOUND, Plan, binds
from planner.report import quality as quality_report
from planner.report.hours import by_hour

LITTLE = 0.005  # shares below this are not told
Row = dict[str, Any]


def chapters(plan: Plan) -> list[tuple[str, list[str]]]:
    """(heading, sentences) of those that the plan has something to say about; none without an answer."""
    if not plan.has_answer:
        return []
    told = _Told(plan)
    found = (
        ("Why this architecture", quality_report.sentences(plan)),
        ("Why here", told.here()),
        ("Why this", told.this()),
        ("On which line", told.lines()),
        ("Why then", told.then()),
    )
    return [(heading, sentences) for heading, lines in found if (sentences := list(lines))]


class _Told:
    def __init__(self, plan: Plan):
        self.plan, self.currency = plan, plan["spec"].get("currency", "USD")
        self.of_site: dict[str, list[Row]] = defaultdict(list)
        for row in plan["schedule"]:
            self.of_site[row["site"]].append(row)
        self.sites = list(dict.fromkeys(row["site"] for row in plan["fleet"]))
        self.paid = {
            site: paid
            for site in self.sites
            if (paid := _mean(self.of_site[site], "energy_j", "price_per_j")) is not None
        }
        self.seconds = {row["slot"]: row["seconds"] for row in plan["schedule"]}
        self.binding = [row for row in plan["limits"] if binds(row)]

    # -- places ----------------------------------------------------------------------------------------------------

    def here(self) -> Iterator[str]:
        made = self._made()
        for site in self.sites:
            parts = [_makes(made[site])] if made[site] else []
            own = sum(row["own_power_w"] for row in self.of_site[site])
            if own and site in self.paid and len(self.paid) > 1:
                parts.append(f"its electricity comes to {self._per_mwh(self.paid[site])}{self._rank(site)}")
            parts += [f"its {name} is used up{self._worth(row)}" for name, row in self._full(site)]
            yield f"{site}: {'; '.join(parts)}." if parts else f"{site}: stands by."
        asked = [site["region"] for site in self.plan["spec"]["sites"]]
        empty = [region for region in asked if region not in self.sites]
        if empty and len(empty) == len(asked) - len(self.sites):  # else some go by another name in the spec
            yield f"{_listed(empty)} {'stay' if len(empty) > 1 else 'stays'} empty."

    def _made(self) -> dict[str, dict[str, float]]:
        """Site -> workload -> its share of the tokens."""
        tokens: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for row in self.plan["routes"]:
            tokens[row["workload"]][row["site"]] += row["tokens_per_s"] * self.seconds[row["slot"]]
        for workload in self.plan["workloads"]:
            if workload["kind"] == "training":
                for point in workload["points"]:
                    tokens[workload["name"]][point["site"]] += 1.0
        made: dict[str, dict[str, float]] = defaultdict(dict)
        for workload, by_site in tokens.items():
            for site, amount in by_site.items():
                if amount >= LITTLE * sum(by_site.values()):
                    made[site][workload] = amount / sum(by_site.values())
        return made

    def _rank(self, site: str) -> str:
        least = min(self.paid, key=self.paid.__getitem__)
        if site == least:
            return ", the least of all"
        low = self.paid[least]
        return f", {self.paid[site] / low - 1:.0%} more than in {least}" if low > 0 else ""

    def _full(self, site: str) -> Iterator[tuple[str, Row]]:
        for row in self.binding:
            for name, words in ((f"power in {site}", "power"), (f"connection of {site}", "connection")):
                if row["name"] == name or row["name"].startswith(f"{name} from "):  # of a phase on
                    yield words, row

    def _worth(self, row: Row, per: str = "kW", size: float = 1e3) -> str:
        value = row["marginal_value_divisible"] or row["marginal_value"]
        if not value:
            return ""
        sense = self.plan["spec"].get("objective", {"minimise": "cost"})
        if sense.get("minimise") != "cost":
            return ""
        told = (
            "would by the bound save"
            if row["marginal_value_divisible"] and BY_THE_BOUND in row["note"]
            else "would save"
        )
        return f", one {per} more {told} {-value * size:,.0f} {self.currency}"

    # -- systems and networks --------------------------------------------------------------------------------------

    def this(self) -> Iterator[str]:
        counts: dict[tuple[str, str], int] = defaultdict(int)
        for row in self.plan["fleet"]:
            counts[row["system"], row["how"]] += row["count"]
        scarce = {row["name"]: row for row in self.binding}
        for (system, how), count in counts.items():
            row = scarce.get(f"supply of {system} ({how})") or scarce.get(
                f"supply of {system} ({how.replace('_', ' ')})"
            )
            if row is not None:
                yield f"All {count:,} {system} that can be had{self._worth(row, 'system', 1.0)}."
        designs: dict[str, list[Row]] = defaultdict(list)
        for row in self.plan["fabrics"]:
            if row["systems"] > 1:
                designs[row["design"]].append(row)
        for design, rows in designs.items():
            of_system: dict[str, list[Row]] = defaultdict(list)
            for row in rows:
                of_system[row["system"]].append(row)
            words = [
                f"{sum(row['systems'] for row in mine):,} {system} at {_range([row['price'] / row['systems'] for row in mine])}{_instead(mine)}"
                for system, mine in of_system.items()
            ]
            yield f"{design} joins, in {self.currency} of network per system, {'; '.join(words)}."
        for row in self.plan["runner_up"]:
            if row["system"] is not None:
                yield f"In {row['site']} {row['system']} ({row['how'].replace('_', ' ')}) comes next: {row['words']}."

    # -- lines -----------------------------------------------------------------------------------------------------

    def lines(self) -> Iterator[str]:
        asked = {
            w["name"]: w["security"] for w in self.plan["spec"]["workloads"] if w.get("security", "public") != "public"
        }
        for row in self.plan.document.get("lines", ()):
            size = sum(part["bytes"] for part in row["traffic"])
            most = max(row["traffic"], key=lambda part: part["bytes"], default=None)
            if most is None or not size:
                continue
            units = f"{row['units']} x " if row["units"] else ""
            sent: dict[str, list[str]] = defaultdict(list)
            for part in row["traffic"]:
                if part["workload"] in asked:
                    sent[part["workload"]].append(part["traffic"])
            reason = (
                f"; {_listed([f'{name} asks for {asked[name]} ({_listed(kinds)})' for name, kinds in sent.items()])}"
                if sent
                else ""
            )
            use = "" if row["use"] is None else f", {row['use']:.0%} full at its busiest"
            cost = sum(row["cost"].values()) / (size / 1e12)
            yield (
                f"{row['line']}: {units}{row['kind']}{use}, mostly {most['traffic']} of {most['workload']} ({most['bytes'] / size:.0%} of {show(size, 'byte')}), "
                f"at {cost:,.3g} {self.currency} per TB{reason}."
            )  # fmt: skip

    # -- hours -----------------------------------------------------------------------------------------------------

    def then(self) -> Iterator[str]:
        yield from self._days()
        for workload in self.plan["workloads"]:
            if workload["kind"] == "training":
                yield from self._job(workload)
        for site in self.sites:
            yield from self._hours(site)
        items: dict[str, list[Row]] = defaultdict(list)
        for row in self.plan.document.get("electricity", ()):
            items[row["site"]].append(row)
        for site, rows in items.items():
            yield from self._peaks(site, [row for row in rows if row["item"] == "peak"])
            for row in rows:
                if row["item"] == "ppa":
                    yield self._contract(site, row)
            yield from self._battery(site, {row["name"]: row for row in rows if row["item"] == "battery"})

    def _days(self) -> Iterator[str]:
        found = self.plan.document.get("dispatch")
        if found is None:
            return
        days = len({row["day"] for row in self.plan["schedule"] if "day" in row})
        missing = f", and leaves {found['unmet']:.2%} of the requests unserved" if found["unmet"] >= 5e-5 else ""
        yield (
            f"{days or 'One typical'} day{'s' if days else ''} stand{'' if days else 's'} for the year; run through all {found['slots']:,} hours the same fleet "
            f"costs {abs(found['difference']):.2%} {'more' if found['difference'] > 0 else 'less'}{missing}."
        )

    def _job(self, workload: Row) -> Iterator[str]:
        for point in workload["points"]:
            every = self.of_site[point["site"]]
            worked = [{**row, "work": row["active"].get(point["id"], 0.0) * row["seconds"]} for row in every]
            share = sum(row["work"] for row in worked) / sum(row["seconds"] for row in every)
            if share <= 0:
                continue
            pool = point["pools"][0]
            words = f"{workload['name']} runs in {point['site']} on {pool['how'].replace('_', ' ')} {pool['system']} for {share:.0%} of the time, mostly {_spans(_work_by_hour(worked), 'work')} UTC"
            if "day" in worked[0]:
                words += f" on the days of {_listed(_worked_days(worked))}"
            if pool["how"] == "buy":  # electricity is in a rent
                paid, usual = _mean(worked, "work", "price_per_j"), _mean(every, "seconds", "price_per_j")
                words += f", at a mean price of {self._per_mwh(paid)} (all hours: {self._per_mwh(usual)})"
            yield f"{words}."
        for row in self.plan.document.get("preemptions", ()):
            if row["workload"] == workload["name"] and row["lost_share"] >= LITTLE:
                yield f"{row['workload']} makes room {row['resumptions']:,.0f} times over, which costs it {row['lost_s'] / HOUR_S:,.1f} hours, {row['lost_share']:.1%} of its time."

    def _hours(self, site: str) -> Iterator[str]:
        rows = self.of_site[site]
        even = _mean(rows, "seconds", "price_per_j")
        if site not in self.paid or not even or even <= 0 or not any(row["own_power_w"] for row in rows):
            return
        saved = 1 - self.paid[site] / even
        if abs(saved) >= LITTLE:
            words = (
                "less than an even load would: work moves to its cheap hours"
                if saved > 0
                else "more than an even load would: its users wake when it is dear"
            )
            yield f"{site} pays {abs(saved):.1%} {words}."

    def _peaks(self, site: str, rows: list[Row]) -> Iterator[str]:
        if rows:
            low, high = min(row["size"] for row in rows), max(row["size"] for row in rows)
            peaks = show(low, "W") if high - low < 1 else f"{show(low, 'W')} to {show(high, 'W')}"
            yield f"Demand charges in {site}: {sum(row['cost'] for row in rows):,.0f} {self.currency} on monthly peaks of {peaks}."

    def _contract(self, site: str, row: Row) -> str:
        rows = self.of_site[site]
        if row["size"] <= 1e-3:
            return f"{row['name']} in {site} is not contracted: the grid is cheaper in its hours."
        taken = [{**r, "taken": r["ppa_w"][row["name"]] * r["seconds"]} for r in rows]
        grid = _mean(taken, "taken", "price_per_j")
        drawn = sum(r["energy_j"] for r in rows)
        without, bought = max(r["grid_w"] + r["ppa_w"][row["name"]] for r in rows), max(r["grid_w"] for r in rows)
        peak = (
            f"; without it the highest purchase would be {show(without, 'W')} in place of {show(bought, 'W')}"
            if without > bought * 1.001
            else ""
        )
        stated = next(
            c["price"]
            for site_ in self.plan["spec"]["sites"]
            for c in (site_.get("electricity") or {}).get("ppa", ())
            if c["name"] == row["name"]
        )
        return (
            f"{row['name']} in {site}: {show(row['size'], 'W')} are contracted at {stated} and meet {row['energy_j'] / drawn:.0%} of what is drawn; "
            f"the grid costs {self._per_mwh(grid or 0.0)} in the same hours{peak}."
        )

    def _battery(self, site: str, rows: dict[str, Row]) -> Iterator[str]:
        if not rows:
            return
        energy, power = rows["energy"], rows["power"]
        if energy["size"] <= 1e-3:
            yield f"No battery in {site}: it would cost more than it saves."
            return
        listed = self.of_site[site]
        years = sum(row["seconds"] for row in listed) / YEAR_S
        saved = (
            sum((row["discharge_w"] - row["charge_w"]) * row["seconds"] * row["price_per_j"] for row in listed) / years
        )
        before, after = (
            max(row["grid_w"] + sign * (row["discharge_w"] - row["charge_w"]) for row in listed) for sign in (1, 0)
        )
        hours = by_hour([{**row, "power_w": row["charge_w"], "own_power_w": row["discharge_w"]} for row in listed])
        peak = (
            f" and lowers the highest purchase from {show(before, 'W')} to {show(after, 'W')}"
            if before > after * 1.001
            else ""
        )
        yield (
            f"The battery in {site} ({show(energy['size'], 'J')}, {show(power['size'], 'W')}) charges mostly {_spans(hours, 'power_w')} and discharges {_spans(hours, 'own_power_w')} UTC, "
            f"{energy['energy_j'] / energy['size'] / years:,.0f} times a year; at {energy['cost'] + power['cost']:,.0f} {self.currency} over the horizon it saves {saved:,.0f} a year of energy{peak}."
        )

    def _per_mwh(self, price_per_j: float) -> str:
        return f"{price_per_j * MWH_J:,.1f} {self.currency} per MWh"


def _mean(rows: Iterable[Row], weight: str, name: str) -> float | None:
    total = [(row[weight], row[weight] * row[name]) for row in rows]
    weights = sum(w for w, _ in total)
    return sum(v for _, v in total) / weights if weights > 0 else None


def _work_by_hour(rows: list[Row]) -> list[Row]:
    """`work` by hour of the day (UTC)."""
    hours: dict[int, float] = defaultdict(float)
    for row in rows:
        hours[row["hour_utc"]] += row["work"]
    return [{"hour_utc": hour, "work": work} for hour, work in sorted(hours.items())]


def _worked_days(rows: list[Row]) -> list[str]:
    """The typical days with at least a tenth of the work."""
    days: dict[str, float] = defaultdict(float)
    for row in rows:
        days[row["day"]] += row["work"]
    return [day for day, work in days.items() if work >= 0.1 * sum(days.values())]


def _makes(shares: dict[str, float]) -> str:
    return f"makes {_listed([f'{share:.0%} of {workload}' for workload, share in shares.items()])}"


def _instead(rows: list[Row]) -> str:
    """What the other designs would come to, where the plan says so."""
    others: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for other in row.get("instead", ()):
            others[other["design"]].append(other["price_per_system"])
    words = [f"{design} {_range(prices)}" for design, prices in others.items()]
    return f" ({', '.join(words)})" if words else ""


def _range(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:,.0f}" if high - low < 1 else f"{low:,.0f} to {high:,.0f}"


def _spans(hours: list[Row], name: str) -> str:
    """The hours with at least half of the largest value, such as "01-05, 22-24"; the day is a ring, but is read from 0 on."""
    most = max(row[name] for row in hours)
    chosen = [row["hour_utc"] for row in hours if row[name] >= 0.5 * most > 0]
    spans: list[list[int]] = []
    for hour in chosen:
        if spans and spans[-1][1] == hour:
            spans[-1][1] = hour + 1
        else:
            spans.append([hour, hour + 1])
    return ", ".join(f"{a:02d}-{b:02d}" for a, b in spans) or "never"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
