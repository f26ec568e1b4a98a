"""Plans under links: frozen as they were, found by whoever has the id, over by age or by their owner, and never given up for others."""

import gzip
import json
import os
import threading

import pytest

from planner import load_plan, verify_plan
from planner.dashboard import sources
from planner.dashboard.frozen import life, links
from planner.dashboard.state import store
from planner.errors import SpecError

ANN, BOB = store.new_id(), store.new_id()


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(store.FOLDER, str(tmp_path))
    return tmp_path / links.HOME


@pytest.fixture
def plan():
    return sources.plan_of_example("owning")


def later(monkeypatch, seconds: float):
    """Move the clock of the links."""
    now = links.time.time()
    monkeypatch.setattr(links.time, "time", lambda: now + seconds)


def files(home) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.iterdir()}


def test_a_link_opens_its_plan_as_it_was_and_opening_writes_nothing(home, plan):
    name = links.make(plan, ANN, title=" A title ", author="Ann", base="owning", edits=[("sites[0].power", "5 MW")])
    before = files(home)
    for _ in range(1000):
        found = links.opened(name)
    assert found.over is None and found.plan.document == plan.document
    assert (found.record.title, found.record.author, found.record.base) == ("A title", "Ann", "owning")
    assert found.record.edits == (("sites[0].power", "5 MW"),)
    assert files(home) == before


def test_the_file_of_a_link_is_a_plan_that_every_command_reads(home, plan, tmp_path):
    name = links.make(plan, ANN)
    (tmp_path / "plan.json").write_bytes(gzip.decompress((home / f"{name}.json.gz").read_bytes()))
    again = load_plan(tmp_path / "plan.json")
    assert again.document == plan.document and verify_plan(again) == []


def test_a_link_tells_nothing_of_its_owner(home, plan):
    name = links.make(plan, ANN)
    assert not [content for content in files(home).values() if ANN.encode() in content] and ANN not in name
    assert links.owner_of(ANN) != links.owner_of(BOB)


def test_a_link_is_over_at_its_hour_and_says_when(home, plan, monkeypatch):
    name, short = links.make(plan, ANN), links.make(plan, ANN, keep_days=1)
    later(monkeypatch, 86_399)
    assert links.opened(short).plan is not None
    later(monkeypatch, 1)
    assert links.opened(short).over == "expired" and links.opened(short).plan is None
    assert links.opened(name).plan is not None and [each.id for each in links.of_owner(ANN)] == [name]
    later(monkeypatch, 86_400 * life.USUAL_DAYS)
    assert links.opened(name).over == "expired" and not links.of_owner(ANN)


def test_a_server_bounds_the_life_of_a_link(home, plan, monkeypatch):
    monkeypatch.setenv(life.KEEP_DAYS, "3")
    assert life.days() == (1, 3)
    record = links.opened(links.make(plan, ANN, keep_days=365)).record
    assert record.until_s - record.made_s == pytest.approx(3 * 86_400)
    for text, days in (("", 90), ("x", 90), ("-4", 1), ("1000000", 3650)):
        monkeypatch.setenv(life.KEEP_DAYS, text)
        assert life.most_days() == days


def test_only_its_owner_removes_a_link_which_says_so_and_keeps_nothing(home, plan):
    name = links.make(plan, ANN, title="a secret", author="Ann")
    assert not links.remove(name, BOB) and links.opened(name).plan is not None
    assert links.remove(name, ANN)
    assert links.opened(name).over == "removed" and not links.of_owner(ANN)
    assert list(files(home)) == [f"{name}.link"] and b"secret" not in files(home)[f"{name}.link"]


@pytest.mark.parametrize(
    "name", ["", "..", "../links", "a/b" * 8, "x\0" * 12, "a" * 300, "0123456789abcdef", "%2e%2e" * 4]
)
def test_a_forged_id_opens_nothing_and_removes_nothing(home, plan, name):
    links.make(plan, ANN)
    before = files(home)
    assert links.opened(name).over == "unknown" and links.opened(name).record is None
    assert not links.remove(name, ANN) and files(home) == before


def test_a_link_under_the_name_of_another_is_none(home, plan):
    name, other = links.make(plan, ANN), store.new_id()
    for ending in (".json.gz", ".link"):
        (home / f"{other}{ending}").write_bytes((home / f"{name}{ending}").read_bytes())
    assert links.opened(other).over == "damaged" and links.opened(name).plan is not None


@pytest.mark.parametrize("ending", [".json.gz", ".link"])
def test_a_damaged_link_says_so(home, plan, ending):
    name = links.make(plan, ANN)
    file = home / f"{name}{ending}"
    whole = file.read_bytes()
    another = json.dumps({**plan.document, "status": "optimal?"}).encode()
    for content in (b"", whole[:-9], b"{}", b"[]", gzip.compress(another), whole + b" x"):
        file.write_bytes(content)
        assert links.opened(name).over == "damaged"
    file.unlink()
    assert links.opened(name).over == ("damaged" if ending == ".json.gz" else "unknown")


def test_a_full_store_refuses_another_link_and_keeps_all_that_live(home, plan, monkeypatch):
    monkeypatch.setattr(links, "MOST_OF_OWNER", 2)
    monkeypatch.setattr(links, "MOST_LINKS", 3)
    mine = [links.make(plan, ANN, keep_days=days) for days in (1, 30)]
    with pytest.raises(SpecError, match="remove one"):
        links.make(plan, ANN)
    his = links.make(plan, BOB)
    with pytest.raises(SpecError, match="takes no more links"):
        links.make(plan, BOB)
    assert all(links.opened(name).plan is not None for name in (*mine, his))
    later(monkeypatch, 2 * 86_400)  # the first is over
    new = links.make(plan, BOB)
    assert links.opened(mine[0]).over == "expired" and not (home / f"{mine[0]}.json.gz").exists()
    assert all(links.opened(name).plan is not None for name in (mine[1], his, new))
    later(monkeypatch, links.REMEMBERED_S)
    links.make(plan, ANN)
    assert links.opened(mine[0]).over == "unknown"  # so long over that nothing is left


def test_bytes_are_bounded_of_one_plan_and_of_all(home, plan, monkeypatch):
    name = links.make(plan, ANN)
    size = (home / f"{name}.json.gz").stat().st_size
    monkeypatch.setattr(links, "MOST_FOLDER_BYTES", 2 * size - 1)
    with pytest.raises(SpecError, match="takes no more links"):
        links.make(plan, ANN)
    monkeypatch.setattr(links, "MOST_BYTES", size - 1)
    with pytest.raises(SpecError, match="too large"):
        links.make(plan, ANN)
    assert len(files(home)) == 2


def test_a_plan_without_a_record_goes_once_nobody_can_be_writing_it(home, plan):
    links.make(plan, ANN)
    fresh, old = home / f"{store.new_id()}.json.gz", home / f"{store.new_id()}.json.gz"
    for path in (fresh, old):
        path.write_bytes(b"unfinished")
    os.utime(old, (1.0, 1.0))
    links.make(plan, ANN)
    assert fresh.exists() and not old.exists()


def test_owners_who_share_and_remove_at_once_lose_nothing(home, plan):
    kept = {ANN: [], BOB: []}
    failed = []

    def work(secret):
        try:
            for i in range(12):
                name = links.make(plan, secret, title=str(i))
                if i % 3:
                    kept[secret].append(name)
                else:
                    assert links.remove(name, secret)
        except Exception as error:  # told below: a thread has nobody to tell
            failed.append(error)

    threads = [threading.Thread(target=work, args=(secret,)) for secret in (ANN, BOB)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    for secret, names in kept.items():
        assert {record.id for record in links.of_owner(secret)} == set(names) and len(names) == 8
        assert all(links.opened(name).plan is not None for name in names)


def test_a_folder_that_cannot_be_written_is_told(tmp_path, plan, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "file"))
    with pytest.raises(SpecError, match="no folder that it may write"):
        links.make(plan, ANN)
    assert links.opened(store.new_id()).over == "unknown" and links.of_owner(ANN) == []


def test_a_record_that_cannot_be_read_for_a_moment_loses_nothing(home, plan, monkeypatch):
    """Too many open files while one link is looked at, and another is made: the first one opens again afterwards."""
    name = links.make(plan, ANN)
    links._parsed.cache_clear()
    read = links.Path.read_bytes if hasattr(links, "Path") else type(home).read_bytes

    def failing(path):
        if path.name == f"{name}{links.RECORD}":
            raise OSError(24, "Too many open files")
        return read(path)

    old = links.time.time() - 2 * links.UNFINISHED_S
    os.utime(home / f"{name}{links.PLAN}", (old, old))
    with monkeypatch.context() as patch:
        patch.setattr(type(home), "read_bytes", failing)
        assert links.opened(name).plan is None
        links.make(plan, BOB)
    assert links.opened(name).plan.document == plan.document


def test_one_address_cannot_fill_the_store_under_many_secrets(home, plan, monkeypatch):
    monkeypatch.setattr(links, "MOST_OF_CLIENT", 3)
    kept = [links.make(plan, store.new_id(), address="203.0.113.7") for _ in range(3)]
    with pytest.raises(SpecError, match="your network"):
        links.make(plan, store.new_id(), address="203.0.113.7")
    others = [links.make(plan, ANN, address=address) for address in ("203.0.113.8", "2001:db8::1", None)]
    assert all(links.opened(name).plan is not None for name in (*kept, *others))
    for _ in range(2):
        links.make(plan, store.new_id(), address="2001:db8::" + "abcd:" * 3 + "1")  # of the network of the one before
    with pytest.raises(SpecError, match="your network"):
        links.make(plan, store.new_id(), address="2001:db8::2")
    links.make(plan, store.new_id(), address="2001:db8:1::2")
    for _ in range(4):
        links.make(plan, store.new_id())  # where the server knows no address, the other bounds hold alone


def test_the_bytes_of_one_address_are_bounded(home, plan, monkeypatch):
    links.make(plan, ANN, address="203.0.113.7")
    size = sum(map(len, (content for name, content in files(home).items() if name.endswith(links.PLAN))))
    monkeypatch.setattr(links, "MOST_CLIENT_BYTES", 2 * size - 1)
    with pytest.raises(SpecError, match="your network"):
        links.make(plan, BOB, address="203.0.113.7")
    links.make(plan, BOB, address="203.0.113.8")


def test_an_address_is_told_by_no_file_of_the_links(home, plan):
    links.make(plan, ANN, address="203.0.113.7")
    assert not [name for name, content in files(home).items() if b"203.0.113.7" in content]
    assert links.client_of("203.0.113.7") == links.client_of("203.0.113.7") != links.client_of("203.0.113.8")
    key = home.parent / "clients.key"
    assert len(key.read_bytes()) == 32 and key.stat().st_mode & 0o077 == 0


def test_what_is_over_longest_is_forgotten_first_and_nothing_that_lives(home, plan, monkeypatch):
    """Whoever makes and removes links again and again fills no folder with their records."""
    monkeypatch.setattr(links, "MOST_OVER", 2)
    alive = links.make(plan, BOB)
    gone = []
    for _ in range(4):
        gone.append(links.make(plan, ANN))
        assert links.remove(gone[-1], ANN)
    links.make(plan, ANN)
    assert [links.opened(name).over for name in gone] == ["unknown", "unknown", "removed", "removed"]
    assert links.opened(alive).plan is not None
