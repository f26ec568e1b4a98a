"""A spec as a JSON document: read it from text, and change single values in it. Its meaning: `planner.spec.model`."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.errors import Issue, SpecError, words_of
from planner.messages import Message
from planner.packed import unpacked
from planner.spec.old_keys import as_written
from planner.spec.quantities import shown
from planner.spec.series import with_series
from planner.ways_in.kinds import wrong_text
from planner.ways_in.named import with_hub_models

Edits = tuple[tuple[str, Any], ...]  # (path such as sites[0].power, value); None to take the value away
MOST_DIGITS = 9  # digits of a position in a list
MOST_LEVELS = 60
TOO_DEEP = Message.of("spec.too_deep").text()
EXAMPLE = '{"name": ..., "workloads": [...], "sites": [...]}'


def read_document(text: str | bytes) -> dict[str, Any]:
    """Read the JSON object in `text`, which may be gzip. Raises SpecError, also for NaN, infinities, repeated keys and half characters."""
    try:
        text = unpacked(text) if isinstance(text, bytes) else text
    except ValueError as error:
        raise SpecError([Issue("", str(error))]) from None
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        document = json.loads(text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_no_repeats)
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise SpecError([Issue("", Message.of("spec.not_unicode", place=error.start + 1).text())]) from None
    except UnicodeEncodeError:
        raise SpecError([Issue("", Message.of("spec.half_character").text())]) from None
    except json.JSONDecodeError as error:
        raise SpecError(
            wrong_text(text if isinstance(text, str) else text.decode(errors="replace"))
            or [
                Issue(
                    "",
                    Message.of(
                        "spec.not_json",
                        error=error.msg,
                        line=str(error.lineno),
                        column=str(error.colno),
                        example=EXAMPLE,
                    ).text(),
                )
            ]
        ) from None
    except RecursionError:
        raise SpecError([Issue("", TOO_DEEP)]) from None
    except _Refused as error:
        raise SpecError([Issue("", words_of(error))]) from None
    except ValueError:  # Python refuses to read whole numbers of thousands of digits
        raise SpecError([Issue("", Message.of("spec.too_many_digits").text())]) from None
    if not isinstance(document, dict):
        raise SpecError([Issue("", Message.of("spec.object_expected", example=EXAMPLE, given=shown(document)).text())])
    if _is_deep(document):
        raise SpecError([Issue("", TOO_DEEP)])
    return document


def read_value(text: str) -> Any:
    """Read any JSON value by the rules of a document. Raises ValueError in words."""
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_no_repeats)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        found = {"error": error.msg, "line": str(error.lineno), "column": str(error.colno)}
        raise ValueError(Message.of("spec.no_json_value", **found).text()) from None
    except UnicodeEncodeError:
        raise ValueError(Message.of("spec.half_character").text()) from None
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except _Refused:
        raise
    except ValueError:
        raise ValueError(Message.of("spec.too_many_digits").text()) from None
    if _is_deep(value):
        raise ValueError(TOO_DEEP)
    return value


def _is_deep(document: Any) -> bool:
    """Tell whether values are nested beyond all that a spec can hold, before anything walks through them by recursion."""
    level = [document]
    for _ in range(MOST_LEVELS):
        level = [
            item
            for node in level
            for item in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
        ]
    return bool(level)


def read_spec(
    source: str | Path | Mapping[str, Any], hourly: Sequence[Path], overlays: Sequence[Path] = ()
) -> dict[str, Any]:
    """Read a spec from a file or a mapping, with the models of the hub and the hourly series that it names; `hourly`: folders in which series may lie."""
    if isinstance(source, Mapping):  # a copy, for the plan keeps it while its owner may go on changing it
        return with_series(with_hub_models(copy.deepcopy(dict(source)), overlays), hourly)
    document = with_hub_models(read_document(Path(source).read_bytes()), overlays)
    return with_series(document, [*hourly, Path(source).parent])


class _Refused(ValueError):
    """A document that Python's JSON reader accepts, but a spec must not contain."""


def _no_constant(name: str) -> float:
    raise _Refused(Message.of("spec.not_finite", number=name).text())


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _Refused(Message.of("spec.too_large", number=text[:40]).text())
    return value


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise _Refused(Message.of("spec.key_twice", key=shown(key)).text())
        result[key] = value
    return result


def changed(document: dict[str, Any], assignments: Sequence[str], solver: Mapping[str, Any]) -> dict[str, Any]:
    """Apply each `PATH=VALUE` to the document, and put the `solver` options over its own. Raises SpecError."""
    for assignment in assignments:
        assign(document, assignment)
    if solver:
        own = document.get("solver")
        if not isinstance(own, dict | None):
            raise SpecError([Issue("solver", Message.of("spec.expected_object_got", given=shown(own)).text())])
        document["solver"] = {**(own or {}), **solver}
    return document


def edited(document: Mapping[str, Any], edits: Edits) -> dict[str, Any]:
    """Copy the document with other values; missing blocks on the way are added. Raises SpecError with every path that leads nowhere."""
    result = copy.deepcopy(dict(document))
    problems = []
    for i, (path, value) in enumerate(edits):
        parts = parts_in(result, path)
        place: Any = result
        walked: list[str | int] = []
        try:
            for part in parts[:-1]:
                walked.append(part)
                if isinstance(place, dict) and place.get(part) is None:
                    place[part] = {}
                place = place[part]
            walked = parts
            place[parts[-1]] = copy.deepcopy(value)  # later edits reach into it
        except (LookupError, TypeError):
            before = [earlier for earlier, _ in edits[:i]]
            problems.append(Issue(path, _leads_nowhere(parts, walked, before)))
    if problems:
        raise SpecError(problems)
    return result


def _leads_nowhere(parts: Sequence[str | int], missing: Sequence[str | int], before: Sequence[str]) -> str:
    """Say where a path leads nowhere, and which of the paths before it took the place away; `missing`: its parts up to the first that is not there."""
    for path in before:
        outer = path_parts(path)
        if len(outer) < len(parts) and list(map(str, outer)) == list(map(str, parts[: len(outer)])):
            return Message.of("spec.taken_away", key=str(parts[-1]), path=path).text()
    return Message.of("spec.no_such_path", key=_path_of(missing)).text()


def _path_of(parts: Sequence[str | int]) -> str:
    """Write parts as a path.

    >>> _path_of(["sites", 7, "power"])
    'sites[7].power'
    """
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).removeprefix(".")


def at(document: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path of the spec; None where there is none."""
    place: Any = document
    for part in parts_in(document, path):
        if isinstance(place, Mapping):
            place = place.get(part)
        elif isinstance(place, list) and isinstance(part, int) and part < len(place):
            place = place[part]
        else:
            return None
    return place


def path_parts(path: str) -> list[str | int]:
    """Split a path such as `sites[0].power` into keys and positions."""
    return [
        int(part) if part.isdecimal() and len(part) <= MOST_DIGITS else part
        for part in path.replace("[", ".").replace("]", "").split(".")
    ]


def parts_in(document: Mapping[str, Any], path: str) -> list[str | int]:
    """Split a path for a document, in the keys that it has: a number is a position in a list, and a key elsewhere.

    >>> parts_in({"sites": [{"steps": {"2027": 1}}]}, "sites[0].steps.2027")
    ['sites', 0, 'steps', '2027']
    """
    parts: list[str | int] = []
    place: Any = document
    for part in as_written(document, path_parts(path)):
        parts.append(part if isinstance(place, list) else str(part))
        try:
            place = place[parts[-1]]
        except (IndexError, KeyError, TypeError):
            place = None
    return parts


def assign(document: dict[str, Any], assignment: str) -> None:
    """Write an assignment such as `workloads[0].slo.ttft.p95=400 ms` into the document; the value is JSON if it parses, else text."""
    path, equals, text = assignment.partition("=")
    parts = parts_in(document, path)
    if not equals or not path:
        raise SpecError([Issue("--set", Message.of("spec.assignment_expected", given=assignment).text())])
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        value = text
    place: Any = document
    for part in parts[:-1]:
        try:
            place = place.setdefault(part, {}) if isinstance(place, dict) else place[part]
        except (IndexError, TypeError):
            raise SpecError([Issue(f"--set {path}", Message.of("spec.no_such_path", key=part).text())]) from None
    try:
        place[parts[-1]] = value
    except (IndexError, TypeError):
        raise SpecError([Issue(f"--set {path}", Message.of("spec.not_settable", key=parts[-1]).text())]) from None
