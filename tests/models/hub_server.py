"""The parts of a hub's API that are used, on loopback: create, preupload, commit, info, tree, resolve. In memory."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlparse


class Hub(ThreadingHTTPServer):
    """Repositories of commits, each a map of paths to bytes; branches point at commits."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.commits: dict[str, dict[str, dict[str, bytes]]] = {}
        self.branches: dict[str, dict[str, str]] = {}
        self.requests: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def create(self, name: str) -> None:
        if name not in self.commits:
            first = hashlib.sha1(name.encode()).hexdigest()
            self.commits[name], self.branches[name] = {first: {}}, {"main": first}

    def commit_of(self, name: str, revision: str) -> str | None:
        revision = self.branches.get(name, {}).get(revision, revision)
        return revision if revision in self.commits.get(name, {}) else None


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def _answer(self, value: Any, status: int = 200, **headers: str) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _missing(self, code: str = "RepoNotFound") -> None:
        self._answer({"error": "not found"}, 404, X_Error_Code=code)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_POST(self) -> None:
        path, body = unquote(urlparse(self.path).path), self._body()
        self.server.requests.append(f"POST {path}")
        if path == "/api/repos/create":
            request = json.loads(body)
            name = f"{request.get('organization') or 'me'}/{request['name']}"
            self.server.create(name)
            self._answer({"url": f"{self.server.url}/{name}", "name": name})
        elif path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/branch/(.+)", path):
            branches = self.server.branches[found[1]]
            branches.setdefault(found[2], branches["main"])
            self._answer({})
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/preupload/(.+)", path):
            files = [{"path": each["path"], "uploadMode": "regular", "shouldIgnore": False, "oid": None}
                     for each in json.loads(body)["files"]]  # fmt: skip
            self._answer({"files": files})
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/commit/(.+)", path):
            self._commit(found[1], found[2], body)
        else:
            self._missing()

    def _commit(self, name: str, branch: str, body: bytes) -> None:
        before = self.server.commits[name][self.server.branches[name][branch]]
        files = dict(before)
        for line in body.splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                assert entry["value"]["encoding"] == "base64"
                files[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
        commit = hashlib.sha1(body).hexdigest()
        self.server.commits[name][commit] = files
        self.server.branches[name][branch] = commit
        url = f"{self.server.url}/{name}/commit/{commit}"
        self._answer({"success": True, "commitOid": commit, "commitUrl": url, "hookOutput": ""})

    def do_GET(self) -> None:
        path = unquote(urlparse(self.path).path)
        self.server.requests.append(f"{self.command} {path}")
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/(revision|tree)/([^/]+)", path):
            name, kind, revision = found.groups()
            commit = self.server.commit_of(name, revision)
            if name not in self.server.commits or commit is None:
                return self._missing("RepoNotFound" if name not in self.server.commits else "RevisionNotFound")
            files = self.server.commits[name][commit]
            if kind == "tree":
                return self._answer([
                    {"type": "file", "path": at, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                    for at, data in files.items()
                ])  # fmt: skip
            siblings = [{"rfilename": at} for at in files]
            return self._answer({"_id": "1", "id": name, "modelId": name, "sha": commit, "siblings": siblings,
                                 "private": False, "tags": [], "downloads": 0, "likes": 0})  # fmt: skip
        if found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            commit = self.server.commit_of(found[1], found[2])
            data = self.server.commits.get(found[1], {}).get(commit or "", {}).get(found[3])
            if data is None:
                return self._missing("EntryNotFound")
            etag = hashlib.sha1(data).hexdigest()
            return self._answer(data, ETag=f'"{etag}"', X_Repo_Commit=str(commit), Accept_Ranges="none")
        return self._missing()

    do_HEAD = do_GET
