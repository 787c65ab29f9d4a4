"""What only an index in Milvus can meet: windows that are full, a server that is not there, other collections."""

import os
import re
import signal
import sys

import numpy as np
import pytest

import adsh
from adsh.errors import FolderError, InputError, MissingExtraError, ServerError
from tests.index import stores
from tests.index.cases import keys, random_codes
from tests.index.milvus_server import Server, missing
from tests.reference import hamming as plain

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture
def uri():
    return stores.place("milvus", None).location


def refused(kind, location, **opened):
    with pytest.raises(kind) as problem:
        adsh.open_index(location, **({"bits": 48, "timeout": 2} | opened)).close()
    said = str(problem.value)
    assert "\n" not in said
    assert "geheim" not in said
    return said


@pytest.mark.parametrize("distinct", [1, 3, 0])
def test_answers_are_exact_where_more_items_tie_than_the_server_gives_at_once(uri, distinct, monkeypatch):
    monkeypatch.setattr("adsh.index.milvus.search.MOST", 16)
    codes = random_codes(300, 16, distinct=distinct)
    with adsh.open_index(uri, bits=16) as index:
        for start in range(0, 300, 50):
            index.add(keys(50, start), codes[start : start + 50], [{"odd": i % 2} for i in range(50)])
        far = plain.distances(codes[0], codes, 16)
        for k in (1, 15, 16, 17, 100, 300, 500):
            best = plain.top(far, k)
            found = index.search(codes[:1], k=k)[0]
            assert found.keys == [f"item {i}" for i in best]
            assert found.distances.tolist() == far[best].tolist()
            assert (found.codes == codes[best]).all()
        odd = [f"item {i}" for i in plain.top(far, 300) if i % 2]
        assert index.search(codes[:1], k=40, where={"odd": 1})[0].keys == odd[:40]
        assert index.within(codes[:1], radius=6)[0].keys == [f"item {i}" for i in plain.within(far, 6)]
        assert index.keys() == keys(300)
        assert index.verify() == []


def test_an_address_where_no_server_is():
    said = refused(ServerError, "milvus+http://me:geheim@127.0.0.1:1?collection=x")
    assert "no Milvus server answers at milvus+http://me@127.0.0.1:1?collection=x" in said
    assert "start it, or correct the address" in said


@pytest.mark.parametrize("place", ["127.0.0.1:abc", "127.0.0.1:99999", "[::1", ""])
def test_an_address_that_is_none(place):
    said = refused(InputError, f"milvus+http://{place}")
    assert "is no address" in said or "names no host" in said


def test_an_index_that_a_killed_process_left_incomplete_is_completed(uri):
    with adsh.open_index(uri, bits=48) as index:
        index._milvus.client.drop_collection(index._milvus.facts)  # which it makes last
    assert "there is no index" in refused(InputError, uri, bits=None)
    assert "was not created by adsh" in refused(FolderError, uri, bits=64)
    with adsh.open_index(uri, bits=48) as index:
        index.add(keys(3), random_codes(3))
        assert index.keys() == keys(3)


def test_a_server_that_does_not_answer_is_reported():
    server = Server()
    try:
        with adsh.open_index(server.uri(), bits=48, timeout=1) as index:
            index.add(keys(5), random_codes(5))
            os.kill(server._process.pid, signal.SIGSTOP)
            for call in (
                lambda: index.add(keys(5), random_codes(5)),
                lambda: index.search(random_codes(1)),
                index.keys,
            ):
                with pytest.raises(ServerError, match="does not answer within 1 s.*can be repeated"):
                    call()
            os.kill(server._process.pid, signal.SIGCONT)
            assert index.keys() == keys(5)
    finally:
        server.stop()


def test_a_server_that_goes_away_in_the_middle_of_an_add_is_reported_and_the_call_can_be_repeated(monkeypatch):
    server = Server()
    try:
        with adsh.open_index(server.uri(), bits=48, timeout=2) as index:
            index.add(keys(50), random_codes(50))
            upsert = index._milvus.client.upsert

            def killed(*given, **named):
                upsert(*given, **named)
                server.kill()

            monkeypatch.setattr("adsh.index.milvus.index._REQUEST", 10_000)  # the first of several requests is stored
            monkeypatch.setattr(index._milvus.client, "upsert", killed)
            with pytest.raises(ServerError, match="no Milvus server answers.*can be repeated") as problem:
                index.add(keys(100, 50), random_codes(100))
            said = str(problem.value)
            assert "\n" not in said
            stored, of_the_next = map(
                int, re.findall(r"the first (\d+) of 100 items .* next (\d+) all or none", said)[0]
            )
            assert 0 < stored < stored + of_the_next < 100
            server.start()
        with adsh.open_index(server.uri()) as index:
            assert index.keys() == keys(50 + stored)  # the next request never left
            assert index.add(keys(100, 50), random_codes(100)) == 100 - stored
            assert index.keys() == keys(150)
            assert index.verify() == []
    finally:
        server.stop()


def test_a_user_whom_the_server_refuses_is_reported_without_the_password(uri):
    """As a standalone server reports it; milvus-lite checks no user."""
    from pymilvus.exceptions import MilvusException

    with adsh.open_index(uri, bits=48) as index:
        index._milvus._secrets = ["geheim"]
        said = "Fail connecting: auth check failure, please check username and password are correct: me:geheim"
        refuses = pytest.raises(ServerError, match="refuses the user .*: check user, password or token")
        with refuses as problem, index._milvus.translated_errors():
            raise MilvusException(message=said)
        assert "geheim" not in str(problem.value)


def test_options_that_are_none_and_what_the_server_cannot_make(uri):
    assert "choose BIN_FLAT or BIN_IVF_FLAT" in refused(InputError, uri + "&index=HNSW")
    assert "nlist=x: give a whole number" in refused(InputError, uri + "&nlist=x")
    assert "give a name" in refused(InputError, stores.milvus().uri("collection=A-B"))
    assert "has an option colection: choose among collection, index" in refused(InputError, uri + "&colection=x")
    assert "refused" in refused(ServerError, uri + "&index=BIN_IVF_FLAT")  # milvus-lite has none
    assert "there is no index" in refused(InputError, uri, bits=None)  # nothing was left of it
    adsh.open_index(uri, bits=48).close()
    assert "was created with BIN_FLAT: leave index out" in refused(InputError, uri + "&index=BIN_IVF_FLAT")


def test_a_collection_of_another_shape_is_left_alone(uri):
    from pymilvus import MilvusClient

    name = uri.partition("collection=")[2]
    client = MilvusClient(uri.partition("?")[0].removeprefix("milvus+"))
    client.create_collection(name, dimension=8)
    try:
        assert "was not created by adsh: name another with ?collection=NAME" in refused(FolderError, uri)
        assert client.has_collection(name)
    finally:
        client.close()


def test_a_missing_package_is_answered_with_the_command_that_adds_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'adsh\[milvus\]'"):
        adsh.open_index("milvus+http://localhost:19530", bits=8)


def test_a_batch_larger_than_a_request_is_cut(uri, monkeypatch):
    monkeypatch.setattr("adsh.index.milvus.index._REQUEST", 5000)
    with adsh.open_index(uri, bits=8) as index:
        assert index.add(keys(100), np.zeros((100, 1), np.uint8), [{"i": i} for i in range(100)]) == 100
        assert index.search(np.zeros((1, 1), np.uint8), k=100)[0].keys == keys(100)
