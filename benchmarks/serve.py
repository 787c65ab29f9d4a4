"""Measures the search service: the real process, queried over HTTP by raw asyncio clients on the same machine.

    python benchmarks/serve.py [codes|images|kills ...] [--runtime torch|onnx] [--items N] [--seconds S] [--soak MIN]

codes     search by code over 1,000,000 items of 48 bits, 32 keep-alive clients, k = 10, token and request log on: with
          10 and 2,000 distinct codes, as ADSH leaves them, and with random ones
images    search by image (JPEG, 500 x 375) with EfficientNet-Lite0 at 224 px, 16 clients
kills     writers store items one by one while the server is killed (SIGKILL), several times: every item that was
          acknowledged has to be there when it is started again
--soak    searches by code and image and writes for so many minutes, and prints the server's memory as it goes

All three where none is named. Every index and model is made in a folder of its own under the current directory and
removed. Prints lines and writes results/benchmarks/serve.json; what was not measured now is kept in it.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import record
from PIL import Image

import adsh
from adsh.client import Client
from search import make_codes, make_queries

TOKEN, BITS, CLIENTS, K = "a-token-of-the-benchmark", 48, 32, 10


class Server:
    """`adsh serve` as a process; the log goes to a file, as in use."""

    def __init__(self, model, index, *flags):
        self.log = open(Path(index).parent / "serve.log", "wb")  # noqa: SIM115  # closed with the process
        command = [sys.executable, "-m", "adsh", "serve", str(model), str(index), "--port", "0", "--json", *flags]
        environment = {**os.environ, "ADSH_TOKEN": TOKEN}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, env=environment, text=True)
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line.startswith("}"):
                break
        assert lines, f"the server did not start: {Path(self.log.name).read_text()}"
        self.url = json.loads("".join(lines))["url"]
        self.port = int(self.url.rpartition(":")[2])
        client = Client(self.url, token=TOKEN)
        while not client.ready():
            time.sleep(0.02)

    def memory(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) * 1024

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(60)
        self.process.stdout.close()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()


def request(method, path, body, kind="application/json"):
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def image_request(data, k):
    parts = [(b'"image"; filename="a.jpg"\r\nContent-Type: image/jpeg', data), (b'"k"', b"%d" % k)]
    body = b"".join(
        b"--B\r\nContent-Disposition: form-data; name=" + head + b"\r\n\r\n" + one + b"\r\n" for head, one in parts
    )
    return request("POST", "/v1/search", body + b"--B--\r\n", "multipart/form-data; boundary=B")


class Connection(asyncio.Protocol):
    """One keep-alive client: sends the next request as soon as the last is answered."""

    def __init__(self, requests, latencies, statuses, until):
        self.requests, self.latencies, self.statuses, self.until = requests, latencies, statuses, until
        self.buffer, self.done = b"", asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport
        self.ask()

    def ask(self):
        self.sent = time.perf_counter()
        if self.sent >= self.until:
            self.transport.close()
            return
        self.transport.write(next(self.requests))

    def data_received(self, data):
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self.buffer.find(b"content-length: ")
        length = int(self.buffer[at + 16 : self.buffer.find(b"\r\n", at)])
        if len(self.buffer) < head + 4 + length:
            return
        self.latencies.append(time.perf_counter() - self.sent)
        status = self.buffer[9:12]
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.buffer = b""
        self.ask()

    def connection_lost(self, problem):
        if not self.done.done():
            self.done.set_result(None)


async def load(port, requests, clients, seconds):
    """So many clients for so long; requests/s and latencies."""
    latencies, statuses = [], {}
    loop, started = asyncio.get_running_loop(), time.perf_counter()
    connections = []
    for _ in range(clients):
        opened = await loop.create_connection(
            lambda: Connection(requests, latencies, statuses, started + seconds), "127.0.0.1", port
        )
        connections.append(opened[1].done)
    await asyncio.gather(*connections)
    took = time.perf_counter() - started
    milliseconds = np.array(latencies) * 1000
    return {
        "clients": clients,
        "requests": len(latencies),
        "statuses": {status.decode(): count for status, count in sorted(statuses.items())},
        "per_second": len(latencies) / took,
        **{f"p{p}_ms": float(np.percentile(milliseconds, p)) for p in (50, 90, 99)},
        "most_ms": float(milliseconds.max()),
    }


def run(main):
    try:
        import uvloop

        return uvloop.run(main)
    except ImportError:
        return asyncio.run(main)


def forever(requests):
    while True:
        yield from requests


def make_model(folder, network, size):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(32, size, size, 3), dtype=np.uint8)
    model = adsh.ADSH(BITS, network=network, outer=1, samples=16, batch_size=8, progress=False)
    model.fit(images, np.arange(32) % 4).save(folder)
    return folder


def make_index(folder, codes, **options):
    with adsh.open_index(folder, bits=BITS, **options) as index:
        for at in range(0, len(codes), 50_000):
            some = range(at, min(at + 50_000, len(codes)))
            index.add([f"item{i:08d}" for i in some], codes[at : some.stop], [{"class": f"c{i % 10}"} for i in some])
    return folder


def say(name, figures):
    print(
        f"{name}: {figures['per_second']:,.0f}/s, p50 {figures['p50_ms']:.1f} ms, p99 {figures['p99_ms']:.1f} ms, "
        f"{figures['statuses']}", flush=True,
    )  # fmt: skip


def codes_case(folder, options):
    model = make_model(folder / "tiny", "tiny", 32)
    rng = np.random.default_rng(0)
    figures = {}
    for name, distinct in (("10 distinct", 10), ("2,000 distinct", 2000), ("random", None)):
        codes = make_codes(rng, options.items, BITS, distinct)
        index = make_index(folder / f"index{distinct}", codes)
        bodies = [
            json.dumps({"code": code.tobytes().hex(), "k": K}).encode() for code in make_queries(rng, codes, 1000)
        ]
        requests = [request("POST", "/v1/search", body) for body in bodies]
        with Server(model, index) as server:
            run(load(server.port, forever(requests), CLIENTS, 1.0))
            figures[name] = run(load(server.port, forever(requests), CLIENTS, options.seconds))
            figures[name]["server_bytes"] = server.memory()
        say(f"codes, {options.items:,} items, {name}", figures[name])
    return {"items": options.items, "bits": BITS, "k": K, "token": True, "request_log": True, **figures}


def images(count):
    rng = np.random.default_rng(1)
    for _ in range(count):
        small = Image.fromarray(rng.integers(0, 256, size=(12, 16, 3), dtype=np.uint8))
        file = io.BytesIO()
        small.resize((500, 375), Image.Resampling.BICUBIC).save(file, "JPEG", quality=85)
        yield file.getvalue()


def images_case(folder, options):
    model = make_model(folder / "lite0", "efficientnet_lite0", 224)
    if options.runtime == "onnx":
        exported = folder / "lite0-onnx"
        subprocess.run(
            [sys.executable, "-m", "adsh", "export", model, "--format", "onnx", "--out", exported], check=True
        )
        model = exported
    codes = make_codes(np.random.default_rng(0), options.items, BITS, 2000)
    index = make_index(folder / "index-images", codes)
    requests = [image_request(data, K) for data in images(64)]
    with Server(model, index, "--runtime", options.runtime) as server:
        run(load(server.port, forever(requests), 4, 2.0))
        figures = run(load(server.port, forever(requests), 16, options.seconds))
        figures["server_bytes"] = server.memory()
    say(f"images, {options.runtime}", figures)
    return {"network": "efficientnet_lite0 at 224 px", "picture": "JPEG, 500 x 375", "items": options.items, **figures}


async def write_until_killed(port, name, seconds, server):
    """Stores items one by one from 8 clients, kills the server, and gives what was acknowledged."""
    acknowledged, codes = (
        {},
        np.random.default_rng(abs(hash(name))).integers(0, 256, size=(1 << 16, BITS // 8), dtype=np.uint8),
    )

    async def writer(number):
        reader, sender = await asyncio.open_connection("127.0.0.1", port)
        try:
            for at in range(number, len(codes), 8):
                key, code = f"{name}/{at}", codes[at].tobytes().hex()
                sender.write(request("PUT", f"/v1/items/{key}", json.dumps({"code": code}).encode()))
                head = await reader.readuntil(b"\r\n\r\n")
                at = head.find(b"content-length: ")
                await reader.readexactly(int(head[at + 16 : head.find(b"\r\n", at)]))
                if head[9:10] == b"2":
                    acknowledged[key] = code
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            sender.close()

    writers = [asyncio.create_task(writer(number)) for number in range(8)]
    await asyncio.sleep(seconds)
    server.process.send_signal(signal.SIGKILL)
    await asyncio.gather(*writers)
    return acknowledged


def kills_case(folder, options):
    model = make_model(folder / "tiny-kills", "tiny", 32)
    index = make_index(folder / "index-kills", make_codes(np.random.default_rng(0), 1000, BITS, 10))
    draw = np.random.default_rng(7)
    acknowledged, kills = {}, 5 if options.seconds < 10 else 20
    for kill in range(kills):
        with Server(model, index) as server:
            acknowledged |= run(write_until_killed(server.port, f"kill{kill}", float(draw.uniform(0.2, 1.5)), server))
            server.end(signal.SIGKILL)
        with adsh.open_index(index) as opened:
            found = opened.get(list(acknowledged))
            lost = [
                key
                for key, item in zip(acknowledged, found, strict=True)
                if item is None or item.code.hex() != acknowledged[key]
            ]
            assert not lost, f"lost after kill {kill}: {lost[:3]}"
            assert opened.verify() == []
    print(f"{kills} kills, {len(acknowledged):,} items acknowledged, none lost", flush=True)
    return {"kills": kills, "acknowledged": len(acknowledged), "lost": 0}


async def soaked(server, requests, minutes):
    memory, until = [], time.monotonic() + minutes * 60
    figures = asyncio.create_task(load(server.port, requests, CLIENTS, minutes * 60))
    while time.monotonic() < until:
        await asyncio.sleep(min(10, minutes * 6))
        memory.append(server.memory())
        print(f"{(minutes * 60 - (until - time.monotonic())) / 60:5.1f} min  {memory[-1] / 2**20:,.0f} MiB", flush=True)
    return {**await figures, "memory_bytes": memory}


def soak_case(folder, options):
    model = make_model(folder / "tiny-soak", "tiny", 32)
    codes = make_codes(np.random.default_rng(0), options.items, BITS, 2000)
    index = make_index(folder / "index-soak", codes)
    draw, some = np.random.default_rng(3), list(images(16))

    def requests():
        for at in range(1 << 62):
            code = codes[draw.integers(len(codes))].tobytes().hex()
            if at % 50 == 0:
                yield image_request(some[at // 50 % len(some)], K)
            elif at % 50 == 25:  # the same thousand keys over and over: the index does not grow
                yield request("PUT", f"/v1/items/soak/{at % 1000}", json.dumps({"code": code}).encode())
            elif at % 50 == 40:
                yield request(
                    "POST", "/v1/search", json.dumps({"code": code, "filter": {"class": f"c{at % 7}"}}).encode()
                )
            else:
                yield request("POST", "/v1/search", json.dumps({"code": code, "k": K}).encode())

    with Server(model, index) as server:
        figures = run(soaked(server, requests(), options.soak))
    say(f"soak, {options.soak:g} minutes", figures)
    return {"minutes": options.soak, **figures}


CASES = {"codes": codes_case, "images": images_case, "kills": kills_case}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", choices=[*CASES, []])
    parser.add_argument("--runtime", default="torch", choices=["torch", "onnx"])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--soak", type=float, default=0.0, metavar="MINUTES")
    options = parser.parse_args()
    chosen = options.cases or ([] if options.soak else list(CASES))
    path = record.ROOT / "results" / "benchmarks" / "serve.json"
    figures = json.loads(path.read_text())["figures"] if path.exists() else {}
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for case in chosen:
            name = f"images, {options.runtime}" if case == "images" else case
            figures[name] = CASES[case](Path(folder), options)
        if options.soak:
            figures["soak"] = soak_case(Path(folder), options)
    written = record.write("serve", figures, ("numpy", "fastapi", "uvicorn", "uvloop", "httptools"))
    print(f"written to {written.relative_to(record.ROOT)}")


if __name__ == "__main__":
    main()
