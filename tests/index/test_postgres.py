"""What only an index on a server can meet: no server, no rights, other tables, many writers, a server that dies."""

import pkgutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import adsh
from adsh.errors import BusyError, FolderError, InputError, MissingExtraError, ServerError
from adsh.utils import urls as address
from tests.index import stores
from tests.index.cases import keys, random_codes
from tests.index.postgres_server import PASSWORD, QUOTED, Server, missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture
def uri():
    return stores.place("postgres", None).location


@pytest.fixture
def run():
    """Statements on the tests' server."""
    import psycopg

    def run(statement, database="postgres", **to):
        with psycopg.connect(stores.postgres().uri(database, **to), autocommit=True) as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else None

    return run


def refused(kind, location, *secrets, **opened):
    """The one line with which a location is refused; it holds no password."""
    with pytest.raises(kind) as problem:
        adsh.open_index(location, **({"bits": 48} | opened)).close()
    said = str(problem.value)
    assert "\n" not in said
    for secret in (PASSWORD, QUOTED, *secrets):
        assert secret not in said
    return said


def test_an_address_where_no_server_is(uri):
    said = refused(ServerError, "postgresql://me:geheim@127.0.0.1:1/photos?table=x", "geheim", timeout=2)
    assert "cannot connect to postgresql://me@127.0.0.1:1/photos?table=x" in said
    assert "start the server, or correct the address" in said
    several = refused(ServerError, "postgresql://me:geheim@127.0.0.1:1,127.0.0.1:2/photos", "geheim", timeout=2)
    assert "cannot connect to postgresql://me@127.0.0.1:1,127.0.0.1:2/photos" in several
    assert "nohost.invalid" in refused(ServerError, "postgresql://me:geheim@nohost.invalid/x", "geheim")


def test_a_wrong_password_user_or_database():
    server = stores.postgres()
    said = refused(ServerError, server.uri(password="verkehrt"), "verkehrt")
    assert "password authentication failed" in said
    assert "check the user and the password" in said
    assert "check the user" in refused(ServerError, server.uri(user="nobody_there"))
    assert "create the database first" in refused(ServerError, server.uri("no_such_database"))


@pytest.mark.parametrize(
    "location",
    [
        "postgresql://me:ge%heim@host/x",
        "postgresql://me:geheim@host:port/x",
        "postgresql://me:geheim@host/x?nothing=1",
        "postgresql://me@host:port/x?password=geheim",
        "postgresql://me:ge/heim@nohost.invalid/x",
        "postgresql://me:ge@heim@nohost.invalid/x",
    ],
)
def test_an_invalid_address_is_reported_without_its_password(location):
    said = refused(adsh.AdshError, location, "geheim", "ge%heim", "ge/heim", "heim")
    assert "postgresql://me@" in said


def test_a_name_that_is_no_name_for_a_table(uri):
    for name in ("Photos", "a b", "x;drop", "", "a" * 50):
        assert "give a name" in refused(InputError, uri.partition("?")[0] + f"?table={name}")


def test_a_server_without_pgvector_or_a_user_who_may_not_add_it(run):
    server = stores.postgres()
    run("CREATE DATABASE bare")
    try:
        nowhere = "options=-cextension_control_path%3D/nowhere"
        said = refused(ServerError, server.uri("bare", nowhere))
        assert "has no pgvector" in said
        assert "install it on the server" in said
        run("CREATE ROLE plain LOGIN PASSWORD 'simple'")
        run("GRANT ALL ON SCHEMA public TO plain", "bare")
        said = refused(ServerError, server.uri("bare", user="plain", password="simple"), "simple")
        assert "have an administrator run CREATE EXTENSION vector" in said
        run("CREATE EXTENSION vector", "bare")
        with adsh.open_index(server.uri("bare", user="plain", password="simple"), bits=48) as index:
            assert index.add(["a"], random_codes(1)) == 1
        run("CREATE ROLE guest LOGIN PASSWORD 'simple'")
        run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest", "bare")
        with adsh.open_index(server.uri("bare", user="guest", password="simple")) as index:
            assert index.keys() == ["a"]
            with pytest.raises(ServerError, match="does not allow it .*ask for the right"):
                index.remove(["a"])
    finally:
        run("DROP DATABASE bare WITH (FORCE)")
        for role in ("plain", "guest"):
            run(f"DROP ROLE IF EXISTS {role}")


def test_tables_of_another_shape_are_left_alone(uri, run):
    run("CREATE TABLE other_items (id int)")
    run("CREATE TABLE facts_facts (name text, value bytea)")
    for name in ("other", "facts"):
        said = refused(FolderError, uri.partition("?")[0] + f"?table={name}")
        assert "was not created by adsh: name another with ?table=NAME" in said
    assert run("SELECT count(*) FROM other_items") == [(0,)]
    adsh.open_index(uri, bits=48).close()
    name = uri.partition("table=")[2]
    run(f"ALTER TABLE {name}_items DROP COLUMN metadata")
    assert f"the table {name}_items" in refused(FolderError, uri)


def test_an_index_of_a_newer_version_is_refused_and_an_older_one_brought_up_to_date(uri, run, monkeypatch):
    from adsh.index.postgres import schema as postgres_schema

    adsh.open_index(uri, bits=48).close()
    with monkeypatch.context() as later:
        newer = [*postgres_schema.MIGRATIONS, ("ALTER TABLE {items} ADD COLUMN weight real",)]
        later.setattr(postgres_schema, "MIGRATIONS", newer)
        for _ in range(2):  # done once
            with adsh.open_index(uri) as index:
                assert index.info()["format_version"] == len(newer)
                index.add(["a"], random_codes(1))
    assert f"format version {len(newer)}, and adsh" in refused(FolderError, uri)


def test_a_missing_package_is_answered_with_the_command_that_adds_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'adsh\[postgres\]'"):
        adsh.open_index("postgresql://localhost/x", bits=8)


def test_neither_import_nor_a_folder_loads_a_database_driver(tmp_path):
    script = f"""
import sys
sys.modules["torch"] = None
import adsh
adsh.open_index({str(tmp_path / "i")!r}, bits=8).close()
assert not {{"psycopg", "pymilvus", "grpc"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_metadata_that_postgresql_cannot_hold_is_refused_whole(uri):
    with adsh.open_index(uri, bits=48) as index:
        for odd in ("\0", "\ud800"):
            with pytest.raises(InputError, match="PostgreSQL stores neither"):
                index.add(["a", "b"], random_codes(2), [{"x": 1}, {"y": odd}])
        assert len(index) == 0
        assert index.search(random_codes(1), where={"y": "\0"})[0].keys == []
        assert index.search(random_codes(1), where={"\0": 1})[0].keys == []


def test_writers_at_once_keep_the_counts_right(uri):
    codes = random_codes(600, distinct=5)
    adsh.open_index(uri, bits=48).close()

    def work(number):
        with adsh.open_index(uri, timeout=60) as index:
            for start in range(0, 600, 60):
                some = slice(start, start + 60)
                index.add(keys(60, start), np.roll(codes, number, axis=0)[some])  # the same keys, other codes
                index.remove(keys(5, start + number))
                assert len(index.search(codes[:1], k=10)[0]) == 10

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))  # raises what a writer raised
    with adsh.open_index(uri) as index:
        assert index.verify() == []
        assert len(index) == len(index.keys())


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_writers_at_once_are_safe_whatever_the_servers_default_isolation(uri, level):
    default = "-c%20default_transaction_isolation%3D" + level.replace(" ", "%5C%20")
    location = f"{uri}&options={default}"
    codes = random_codes(400)  # no two writers update the same row, so nothing fails
    adsh.open_index(location, bits=48).close()

    def work(number):
        with adsh.open_index(location, timeout=60) as index:
            for start in range(0, 100, 10):
                own = slice(100 * number + start, 100 * number + start + 10)
                index.add(keys(400)[own], codes[own])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))  # raises what a writer raised
    with adsh.open_index(location) as index:
        assert index.verify() == []
        assert sum(map(len, index.batches(7))) == 400


def test_items_with_the_same_place_are_all_read(uri, run):
    """An index that several processes filled before the isolation level was set."""
    name = uri.partition("table=")[2]
    with adsh.open_index(uri, bits=8) as index:
        index.add(keys(10), np.arange(10, dtype=np.uint8)[:, None])
        run(f"UPDATE {name}_items SET place = 5")
        assert sorted(key for rows in index.batches(3) for key in rows.keys.run(0, len(rows))) == sorted(keys(10))


def test_one_handle_serves_several_threads(uri):
    codes = random_codes(300, distinct=9)
    with adsh.open_index(uri, bits=48) as index:
        index.add(keys(300), codes)
        right = index.search(codes[:1], k=20)[0].keys
        found = []
        threads = [
            threading.Thread(target=lambda: found.append(index.search(codes[:1], k=20)[0].keys)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [right] * 8


def test_where_items_may_be_distributed_the_answers_are_the_same(uri):
    """By statements without LATERAL, which Citus does not take with a LIMIT."""
    codes = random_codes(300, distinct=9)
    with adsh.open_index(uri, bits=48) as index:
        index.add(keys(300), codes, [{"odd": i % 2} for i in range(300)])
        answers = []
        for index._distributed in (False, True):
            found = index.search(codes[:3], k=50, where={"odd": 1}) + index.search(codes[:3], k=70, offset=5)
            found += index.within(codes[:3], radius=24, limit=100)
            answers.append([(one.keys, one.distances.tolist()) for one in found])
        assert answers[0] == answers[1]
        assert answers[0][0][0]


def test_a_writer_waits_for_another_and_then_says_so(uri):
    import psycopg

    with adsh.open_index(uri, bits=48, timeout=0.3) as index, psycopg.connect(stores.postgres().uri()) as other:
        index._tables.lock(other)
        with pytest.raises(BusyError, match=r"written by another process, and was for 0.3 s"):
            index.add(["a"], random_codes(1))
        assert index.search(random_codes(1))[0].keys == []  # readers do not wait
        other.rollback()
        assert index.add(["a"], random_codes(1)) == 1


def test_what_was_meddled_with_is_found(uri, run):
    name = uri.partition("table=")[2]
    with adsh.open_index(uri, bits=8) as index:
        index.add(["a", "b"], np.array([[1], [2]], dtype=np.uint8))
        run(f"DELETE FROM {name}_items WHERE key = 'a'")
        assert index.verify() == ["code 00000001 has 0 items, and 1 were counted"]


@pytest.mark.parametrize(
    "after", ["postgres.rows._copy", "postgres.index.insert_items"], ids=["the copy", "all but the commit"]
)
def test_a_server_killed_in_the_middle_of_an_add_leaves_no_half_batch_and_the_call_can_be_repeated(after, monkeypatch):
    server = Server("fsync=off")
    try:
        with adsh.open_index(server.uri(), bits=48, timeout=5) as index:
            index.add(keys(100), random_codes(100))
            with monkeypatch.context() as during:
                step = pkgutil.resolve_name(f"adsh.index.{after}")

                def killed(*given):
                    step(*given)
                    server.kill()

                during.setattr(f"adsh.index.{after}", killed)
                with pytest.raises(ServerError, match="was lost .*repeat it") as problem:
                    index.add(keys(3000), random_codes(3000))
            assert "\n" not in str(problem.value)
            with pytest.raises(ServerError, match="cannot connect"):
                len(index)
            server.start()
            assert len(index) == 100
            assert index.verify() == []
            assert index.add(keys(3000), random_codes(3000)) == 2900
            assert index.verify() == []
    finally:
        server.stop()


def test_connections_that_the_server_closed_are_opened_again(uri, run):
    with adsh.open_index(uri, bits=48) as index:
        index.add(["a"], random_codes(1))
        run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'adsh'")
        time.sleep(0.1)
        assert len(index) == 1


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("folder/index", "folder/index"),
        ("postgresql://u:p@h:5/d?table=x", "postgresql://u@h:5/d?table=x"),
        ("postgresql://u:p@ss@h/d", "postgresql://u@h/d"),
        ("postgresql://h/d?password=p&table=x", "postgresql://h/d?table=x"),
        ("postgresql://h/d?password=p", "postgresql://h/d"),
        ("postgresql:///d?host=/run/pg", "postgresql:///d?host=/run/pg"),
        ("milvus+http://u:p@h:19530?token=secret", "milvus+http://u@h:19530"),
    ],
)
def test_a_location_is_shown_without_its_password(location, shown):
    assert address.shown(location) == shown
