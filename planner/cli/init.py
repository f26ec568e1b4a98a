"""The command `init`: a spec drafted from what a person has, with every guess marked."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.cli.options import add_common_options, load_catalog, overlay_folders, positive_users
from planner.cli.output import write_out
from planner.escape import terminal
from planner.exit_codes import OK
from planner.messages import Message

if TYPE_CHECKING:
    from catalog.lookup import Catalog
    from planner.cli.options import Commands
    from planner.facts import Fact
    from planner.ways_in.benchmarks import Benchmark
    from planner.ways_in.draft import Sources

OPTIONS = ("model", "config", "vllm", "sglang", "trtllm", "trace", "log", "fleet", "users")


def add_init(commands: Commands) -> None:
    """Add the command `init`."""
    init = commands.add_parser("init", help="draft a spec from what you have, with every guess marked")
    init.add_argument(
        "--model",
        metavar="hf:ORG/NAME",
        help="model: of the catalog, else of the hub's cache on this disk, else asked from the hub once",
    )
    init.add_argument("--config", metavar="FILE", help="config.json of a model, as the Hugging Face hub has it")
    init.add_argument(
        "--vllm", metavar="COMMAND", help='how vLLM is launched, such as "vllm serve ORG/NAME -tp 8", or its YAML file'
    )
    init.add_argument("--sglang", metavar="COMMAND", help="how SGLang's server is launched, or its YAML file")
    init.add_argument("--trtllm", metavar="COMMAND", help="how `trtllm-serve` is launched, or its YAML file")
    init.add_argument(
        "--trace", metavar="FILE", help="requests: Azure, Mooncake or BurstGPT, or a JSON list of [input, output]"
    )
    init.add_argument(
        "--log",
        metavar="FILE",
        help="benchmark: vllm bench serve, SGLang's bench_serving, AIPerf, GuideLLM or inference-perf, as JSON",
    )
    init.add_argument(
        "--fleet",
        metavar="FILE",
        help="systems: kubectl get nodes -o json, sinfo, or an inventory in CSV; or prices of instances",
    )
    init.add_argument(
        "--users",
        metavar="N",
        type=positive_users,
        help="number of users; how many are at work at once and what each asks are guesses",
    )
    init.add_argument("--region", metavar="NAME", help="region of the catalog where users and sites are")
    init.add_argument("--output", metavar="FILE", help="write the spec there instead of standard output")
    add_common_options(init)
    init.set_defaults(run=_init, format="json")


def _init(arguments: argparse.Namespace) -> int:
    """Draft the spec, check it, write it, and list the guesses and how each source was read."""
    from planner.errors import Issue, SpecError
    from planner.facts import rows
    from planner.pipeline import checked
    from planner.report.notes import told
    from planner.ways_in.draft import drafted

    if not any(getattr(arguments, name) for name in OPTIONS):
        options = ", ".join(f"--{name}" for name in OPTIONS)
        raise SpecError([Issue("init", Message.of("ways_in.no_source", options=options).text())])
    sources, notes = _sources(arguments)
    document, read = drafted(sources, load_catalog(arguments))
    checked(document, overlays=overlay_folders(arguments))
    write_out(arguments, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    if not arguments.quiet:
        for line in told(rows((*notes, *read))):
            print(terminal(line), file=sys.stderr)
        for path, reason in document.get("assumptions", {}).items():
            print(terminal(f"{path}: {Message.of('ways_in.guess', reason=reason).text()}"), file=sys.stderr)
    return OK


def _sources(arguments: argparse.Namespace) -> tuple[Sources, list[Fact]]:
    """Read every file and command that is named. Raises SpecError with the problems of all of them."""
    from planner.errors import Issue, SpecError
    from planner.ways_in.accelerators import region_called
    from planner.ways_in.draft import Sources, home
    from planner.ways_in.fleets import read_fleet
    from planner.ways_in.launch import SGLANG, TRTLLM, VLLM, read_launch
    from planner.ways_in.traces import read_trace

    catalog = load_catalog(arguments)
    problems: list[Issue] = []
    notes: list[Fact] = []

    def tried(read: Any) -> Any:
        try:
            return read()
        except SpecError as error:
            problems.extend(error.problems)
            return None

    region = region_called(arguments.region, catalog) if arguments.region else ""
    if arguments.region and not region:
        from catalog.errors import UnknownName
        from planner.errors import unknown_record

        try:
            catalog.get("regions", arguments.region)
        except UnknownName as error:
            problems.append(Issue("--region", unknown_record(error)))
    commands = {VLLM: arguments.vllm, SGLANG: arguments.sglang, TRTLLM: arguments.trtllm}
    engine = next((engine for engine, command in commands.items() if command), VLLM)
    command = commands[engine]
    launch = tried(lambda: read_launch(command, engine)) if command else None
    fleet = tried(lambda: read_fleet(Path(arguments.fleet), catalog)) if arguments.fleet else None
    zone = catalog.get("regions", home(region, fleet)).words("timezone")
    trace = tried(lambda: read_trace(Path(arguments.trace), zone)) if arguments.trace else None
    log = tried(lambda: _benchmark(Path(arguments.log), catalog)) if arguments.log else None
    config = tried(lambda: _config(arguments, launch.model if launch else log.model if log else "", catalog, notes))
    if problems:
        raise SpecError(problems)
    return Sources(config, arguments.model or "", launch, trace, log, fleet, arguments.users or 0, region), notes


def _benchmark(path: Path, catalog: Catalog) -> Benchmark:
    """Read the busiest result of a benchmark. Raises SpecError for a file that is none."""
    from planner.calibration.benchmark_files import benchmark_cells
    from planner.calibration.measurements import FILES
    from planner.ways_in.benchmarks import benchmark_of

    columns = FILES["serving"]
    return benchmark_of(benchmark_cells(path, (*columns.text, *columns.numbers)), catalog)


def _config(
    arguments: argparse.Namespace, launched: str, catalog: Any, notes: list[Fact]
) -> tuple[str, dict[str, Any]] | None:
    """Return (name, config) of the model: of the file, of a folder that is served, or of the hub; None for one that the catalog has."""
    from planner.facts import Fact
    from planner.spec.document import read_document
    from planner.ways_in.hub import PREFIX, hub_config
    from planner.ways_in.named import known_architecture

    model = arguments.model or launched
    name = model.removeprefix(PREFIX).rstrip("/").rpartition("/")[2]
    file = Path(arguments.config) if arguments.config else Path(model) / "config.json"
    if arguments.config or (model and not model.startswith(PREFIX) and file.is_file()):
        config = read_document(file.read_bytes())
        stated = str(config.get("_name_or_path") or "").rstrip("/").rpartition("/")[2]
        stem = file.stem.removesuffix("config").rstrip("._-") or file.absolute().parent.name
        return name or stated or stem, config
    if not model or known_architecture(model, catalog):
        return None
    config, place = hub_config(model)
    notes.append(Fact("--model", Message.of("ways_in.model_read", model=model, place=place)))
    return name, config
