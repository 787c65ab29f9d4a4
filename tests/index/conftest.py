import pytest

from tests.index import stores


@pytest.fixture(params=stores.KINDS)
def place(request, tmp_path):
    """A place for an index, of each kind in turn."""
    return stores.place(request.param, tmp_path)


@pytest.fixture(scope="session", autouse=True)
def _servers():
    yield
    stores.stop()
