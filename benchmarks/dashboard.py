"""Measure in a browser how fast the dashboard answers, and what it leaves running.

    python benchmarks/dashboard.py [--moves N] [--only CHECK ...]

On the main example, with a server of its own; benchmarks/dashboard.md holds the figures and their causes. Needs Linux, the extra `test` and a Chromium on the path.
Prices and limits are moved by the levers of Change; each answer is one not given before.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from playwright.sync_api import Browser, Page

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.browser import LAST_LINE, chromium, go_to, opened, served, visited
from planner.dashboard import deciding, sources
from planner.dashboard.frozen import links
from planner.dashboard.state import store
from planner.messages import DEFAULT
from planner.report.locale import Words
from planner.report.outputs.html import html_page

CHECKS = ("link", "first", "sliders", "infeasible", "visitors", "killed")
BASE = "?base=mixed_fleet"
VISITORS = 10
BUDGETS_KT = [58.5 - 0.75 * each for each in range(VISITORS)]  # carbon budgets: the plan without one emits 59.3 kt
TOO_LITTLE = "set=limits.budget=100M+USD"
ROUNDED_KT = 0.051  # carbon as shown is rounded by this much; budgets are 0.75 kt apart, and a plan of a tighter one may answer a looser one within the gap
LONGEST_S = 200.0
WORKER = b"planner.dashboard.workers."
AGAIN = "Start again"  # offered where the process of questions has ended
ANSWER = "[class*='st-key-answer-']"
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Row:
    """A check of the dashboard: what was asked, and what was found."""

    check: str
    goal: str
    found: str
    holds: bool


def seconds(check: str, goal_s: float, times: list[float]) -> Row:
    """State the median of some times against a goal."""
    median = statistics.median(times)
    more = f" (median of {len(times)}, most {max(times):.2f} s)" if len(times) > 1 else ""
    return Row(check, f"≤ {goal_s:g} s", f"{median:.2f} s{more}", median <= goal_s)


# -- what runs ---------------------------------------------------------------------------------------------------------


def workers(server: int) -> list[int]:
    """List the processes of solves and questions that a server has started, which are told its number."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0") if folder.name.isdigit() else []
        except OSError:
            continue
        if str(server).encode() in command and any(part.startswith(WORKER) for part in command):
            found.append(int(folder.name))
    return found


def resident_bytes(pid: int) -> int:
    """Read the memory that a process holds; 0 for one that has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def until(holds: Callable[[], bool], longest_s: float = LONGEST_S, look_s: float = 0.1) -> float:
    """Wait until something holds: the time that it took [s]."""
    began = time.perf_counter()
    while not holds():
        if time.perf_counter() - began > longest_s:
            raise TimeoutError(f"did not hold within {longest_s:g} s")
        time.sleep(look_s)
    return time.perf_counter() - began


# -- checks ------------------------------------------------------------------------------------------------------------


def frozen_link(browser: Browser, openings: int, servers: int = 3) -> list[Row]:
    """Open a plan link of the main example: on servers that have just started, on one that runs, many times, and after the server was killed."""
    plan = sources.stored_plan()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ[store.FOLDER] = folder
        query = f"?link={links.make(plan, store.new_id(), report=(DEFAULT, html_page(plan)))}"
        began, load = os.times(), os.getloadavg()[0]
        cold: list[float] = []
        warm: list[float] = []
        for last in range(servers):
            with served(folder) as (address, server):
                cold.append(_until_verdict(browser, address + query))
                if last < servers - 1:
                    continue
                warm += [_until_verdict(browser, address + query) for _ in range(10)]
                before = _cpu_s(server.pid)
                took = time.perf_counter()
                answers = [_status(address + query) for _ in range(openings)]
                took = time.perf_counter() - took
                spent, started = _cpu_s(server.pid) - before, len(workers(server.pid))
                server.kill()
                server.wait()
        with served(folder) as (address, _):
            again = _status(address + query)
        del os.environ[store.FOLDER]
        rows.append(seconds("plan link to its last line, cold server", 1.5, cold))
        rows.append(seconds("plan link to its last line, warm server", 0.7, warm))
        words = f"{answers.count(200):,} in {took:.1f} s, {spent / openings * 1e3:.1f} CPU ms of the server each"
        rows.append(Row(f"{openings:,} openings of one link", "all alive", words, answers == [200] * openings))
        rows.append(Row("processes that these started", "0", str(started), started == 0))
        rows.append(Row("the link after the server was killed", "alive", f"status {again}", again == HTTPStatus.OK))
        used = sum(os.times()[:4]) - sum(began[:4])
        rows.append(
            Row("load when it began; CPU of this check and its children", "", f"{load:.1f}; {used:.0f} s", True)
        )
    return rows


def _until_verdict(browser: Browser, address: str) -> float:
    """Open a link in a browser that was never there, until its last line stands [s]."""
    began = time.perf_counter()
    page = visited(browser, address)
    page.locator("p.verdict").wait_for()
    page.locator("footer").wait_for()
    took = time.perf_counter() - began
    page.context.close()
    return took


def _status(address: str) -> int:
    """Ask for an address without a browser."""
    with urllib.request.urlopen(address, timeout=LONGEST_S) as answer:
        answer.read()
        return int(answer.status)


def _cpu_s(pid: int) -> float:
    """Read the CPU time of a process [s]."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def first_figures(browser: Browser, address: str) -> list[Row]:
    """Open the first page cold, then warm: until its sentence and cards are there, and until all of it is; then click on sites."""
    plan, t = sources.stored_plan(), Words(DEFAULT)
    cards = len(deciding.cost_metrics(plan, t)) + (deciding.odds(plan) is not None) + 3  # chips, peak power, carbon
    rows: list[Row] = []
    page: Page | None = None
    for kind, goal_s, visits in (("cold", 3.0, 1), ("warm", 1.5, 5)):
        figures, whole = [], []
        for _ in range(visits):
            if page is not None:
                page.context.close()
            began = time.perf_counter()
            page = visited(browser, address)
            page.locator("[data-testid=stMetricValue]").nth(cards - 1).wait_for()
            figures.append(time.perf_counter() - began)
            page.get_by_text(LAST_LINE).wait_for()
            whole.append(time.perf_counter() - began)
        rows.append(seconds(f"first figures, {kind}", goal_s, figures))
        rows.append(Row(f"the page to its end, {kind}", "", f"{statistics.median(whole):.2f} s", True))
    assert page is not None
    go_to(page, "Operations")
    times = []
    for site in list(dict.fromkeys(row["site"] for row in plan.document["fleet"]))[:3] * 2:
        page.wait_for_timeout(1500)  # what was drawn before has ended
        began = time.perf_counter()
        page.get_by_role("radio", name=site).or_(page.get_by_role("button", name=site, exact=True)).first.click()
        page.get_by_text(re.compile(f"Below, {site} alone")).wait_for()
        times.append(time.perf_counter() - began)
    page.context.close()
    return [*rows, seconds("a click on a site", 0.3, times)]


def moved(page: Page, lever: int, key: str) -> float:
    """Move a slider by a step and wait for its answer, which has a key of its own [s]."""
    before = page.locator(ANSWER).first.get_attribute("class")
    began = time.perf_counter()
    page.locator("[data-testid=stSlider] input[type=range]").nth(lever).press(key)
    while (found := page.locator(ANSWER)).count() != 1 or found.first.get_attribute("class") == before:
        ended = page.get_by_role("button", name=AGAIN).count() > 0
        if ended or time.perf_counter() - began > LONGEST_S:
            page.screenshot(path=(shot := f"{tempfile.gettempdir()}/dashboard.png"), full_page=True)
            why = "its process has ended" if ended else f"within {LONGEST_S:g} s"
            raise TimeoutError(f"slider {lever} gave no answer, {why}; see {shot}")
        page.wait_for_timeout(20)
    return time.perf_counter() - began


def sliders(browser: Browser, address: str, moves: int) -> list[Row]:
    """Move the slider of a price and that of a latency, there and back, each from its base; answers given before are told by their speed
    and left out: only half of the moves, those away from the base, are new."""
    page, rows = opened(browser, address), []
    go_to(page, "Change")
    page.get_by_text("Answered in").wait_for()
    labels = page.locator("[data-testid=stSlider] label").all_inner_texts()
    for what, label, goal_s in (("price", ", buy", 1.5), ("latency", "p95 at most", 4.0)):
        lever = next((i for i, text in enumerate(labels) if label in text), None)
        if lever is None:
            rows.append(Row(f"{what} slider", f"≤ {goal_s:g} s", "no such slider", False))
            continue
        times: list[float] = []
        while len(times) < moves:
            steps = min(moves - len(times), 5)
            for key in ("ArrowLeft", "ArrowRight"):
                away = [moved(page, lever, key) for _ in range(steps)]
                back = "ArrowRight" if key == "ArrowLeft" else "ArrowLeft"
                for _ in range(steps):
                    moved(page, lever, back)
                times += away
            other = next(i for i in range(len(labels)) if i != lever)
            moved(page, other, "ArrowRight")  # another base, so that no answer is known
        rows.append(seconds(f"{what} slider, release to new plan", goal_s, times[:moves]))
    page.context.close()
    return rows


def infeasible(browser: Browser, address: str) -> list[Row]:
    """Solve the main example with too small a budget: until it is said that no plan exists, and until the repair is shown."""
    page = visited(browser, f"{address}change{BASE}&{TOO_LITTLE}")
    page.get_by_text("Change figures and solve").first.click()
    button = page.get_by_role("button", name="Solve", exact=True)
    button.wait_for()
    began = time.perf_counter()
    button.click()
    page.get_by_text(re.compile("no plan meets all limits")).first.wait_for(timeout=LONGEST_S * 1000)
    verdict = time.perf_counter() - began
    page.get_by_role("button", name="Make this change and solve").wait_for(timeout=LONGEST_S * 1000)
    repair = time.perf_counter() - began
    page.context.close()
    return [seconds("infeasible: verdict", 5.0, [verdict]), seconds("infeasible: repair", 20.0, [repair])]


def visitors(browser: Browser, address: str, server: int) -> list[Row]:
    """Let ten visitors ask with ten budgets at once; then close their tabs."""
    pages, most_workers, most_bytes = [], 0, 0
    for budget in BUDGETS_KT:
        pages.append((budget, visited(browser, f"{address}change{BASE}&set=limits.carbon={budget}+kt")))
    began, emitted = time.perf_counter(), {}
    while len(emitted) < VISITORS:
        running = workers(server)
        most_workers = max(most_workers, len(running))
        most_bytes = max(most_bytes, sum(map(resident_bytes, [server, *running])))
        for budget, page in pages:
            if budget not in emitted and page.locator(ANSWER).count() and f"carbon%3D{budget}" in page.url:
                cards = page.locator(f"{ANSWER} [data-testid=stMetricValue]").all_inner_texts()
                if (carbon := next((card for card in cards if card.endswith(" kt")), None)) is not None:
                    emitted[budget] = float(carbon.split()[0])
        if time.perf_counter() - began > LONGEST_S:
            break
        pages[0][1].wait_for_timeout(100)
    took = time.perf_counter() - began
    kept = sum(carbon <= budget + ROUNDED_KT for budget, carbon in emitted.items())
    for _, page in pages:
        page.context.close()
    gone = until(lambda: not workers(server), longest_s=240.0, look_s=1.0)
    return [
        Row(
            "ten visitors with ten budgets of carbon: each answer within its own",
            "10 of 10",
            f"{kept} of {VISITORS}, {len(set(emitted.values()))} different answers, all within {took:.0f} s",
            kept == VISITORS,
        ),
        Row("their processes", "≤ 2", str(most_workers), most_workers <= 2),
        Row("memory of server and processes", "≤ 3 GB", f"{most_bytes / 1e9:.2f} GB", most_bytes <= 3e9),
        seconds("all tabs closed: processes gone", 120.0, [gone]),
    ]


def killed(browser: Browser, address: str, server: subprocess.Popen[str]) -> list[Row]:
    """Kill the server while a process works for it."""
    page = opened(browser, address)
    go_to(page, "Change")
    until(lambda: bool(workers(server.pid)))
    server.kill()
    server.wait()
    gone = until(lambda: not workers(server.pid), longest_s=240.0)
    page.context.close()
    return [seconds("server killed: processes gone", 120.0, [gone])]


def run() -> None:
    """Measure what was asked, and print a line for each check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=20, help="of each slider (20)")
    parser.add_argument("--openings", type=int, default=1000, help="of one link (1000)")
    parser.add_argument("--only", nargs="*", choices=CHECKS, help="some of the checks; without it, all")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that server and browser end too
    with chromium() as browser, served() as (address, server):
        checks: dict[str, Callable[[], list[Row]]] = {
            "link": lambda: frozen_link(browser, arguments.openings),
            "first": lambda: first_figures(browser, address),
            "sliders": lambda: sliders(browser, address, arguments.moves),
            "infeasible": lambda: infeasible(browser, address),
            "visitors": lambda: visitors(browser, address, server.pid),
            "killed": lambda: killed(browser, address, server),
        }
        for check in [checks[name] for name in CHECKS if name in (arguments.only or CHECKS)]:
            for row in check():
                print(f"{row.check:<64} {row.goal:>9}  {row.found}{'' if row.holds else '  MISSED'}", flush=True)


if __name__ == "__main__":
    run()
