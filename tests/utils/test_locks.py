"""Locks of folders on file systems that have none, and lock files that another user left."""

import errno
import fcntl
import os
import sys

import pytest

from adsh.errors import AdshWarning, FolderError, InputError
from adsh.utils.locks import locked_folder

TAKEN = InputError("taken")


@pytest.mark.parametrize("reason", [errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK])
def test_a_file_system_without_locks_gives_a_warning_and_no_lock(tmp_path, monkeypatch, reason):
    def unsupported(*_):
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with (
        pytest.warns(AdshWarning, match="cannot be locked.*one run at a time") as said,
        locked_folder(tmp_path / "model", TAKEN),
    ):
        pass
    assert len(said) == 1
    assert "\n" not in str(said[0].message)
    assert list(tmp_path.iterdir()) == []


def test_a_system_without_locks_gives_a_warning_and_no_lock(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.warns(AdshWarning, match="cannot be locked"), locked_folder(tmp_path / "model", TAKEN):
        pass
    assert list(tmp_path.iterdir()) == []


def test_other_errors_of_a_lock_are_raised(tmp_path, monkeypatch):
    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", broken)
    with pytest.raises(FolderError, match="input/output error"), locked_folder(tmp_path / "model", TAKEN):
        pass


def test_a_lock_file_of_another_user_is_named(tmp_path, monkeypatch):
    left, opened = tmp_path / ".model.lock", os.open
    left.touch()

    def refuse(path, *how):  # as for another user: root may open every file
        if path == left:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *how)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(FolderError) as refused, locked_folder(tmp_path / "model", TAKEN):
        pass
    assert f"lock file {left}" in str(refused.value)
    assert "permission denied; delete it" in str(refused.value)
    left.unlink()
    with pytest.raises(FolderError, match="choose another folder"), locked_folder(tmp_path / "model", TAKEN):
        pass
