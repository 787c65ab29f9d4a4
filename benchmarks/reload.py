"""Updates the model of a running service under 32 clients: no request may fail.

    python benchmarks/reload.py [updates]      (3)

A service of a small model of images is searched by image, by key with a filter and in batches, items are stored, and
readiness is asked for, by 32 clients on the same machine without a pause. Meanwhile `adsh update` adds a class, several
times. Every answer must have status 200 (201 for an item that is new); the new class must be found after each update.
Writes results/benchmarks/reload.json.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import record
from PIL import Image

CLIENTS, SIDE = 32, 32
COLOURS = {
    "red": (200, 40, 40), "green": (40, 180, 60), "blue": (50, 60, 200), "yellow": (220, 210, 40),
    "white": (235, 235, 235), "black": (20, 20, 20),
}  # fmt: skip


def write_images(folder, name, number, rng):
    (folder / name).mkdir(parents=True)
    for at in range(number):
        pixels = np.clip(np.array(COLOURS[name]) + rng.normal(0, 25, (40, 40, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / name / f"{name}{at}.png")


def adsh(folder, *arguments):
    subprocess.run([sys.executable, "-m", "adsh", *map(str, arguments)], cwd=folder, check=True, capture_output=True)


def form(data):
    head = b'--xx\r\nContent-Disposition: form-data; name="image"; filename="image"\r\n\r\n'
    return "POST", "/v1/search", head + data + b"\r\n--xx--\r\n", "multipart/form-data; boundary=xx"


def requests_of(number, png):
    search = {"key": f"red/red{number % 20}.png", "filter": {"class": "red"}, "k": 5}
    batch = {"queries": [{"key": "red/red1.png"}, {"key": "blue/blue1.png"}], "k": 5}
    item = {"code": "a1b2c3", "metadata": {"of": number}}
    return [
        form(png),
        *(
            (method, path, json.dumps(body).encode(), "application/json")
            for method, path, body in (
                ("POST", "/v1/search", search),
                ("POST", "/v1/search/batch", batch),
                ("PUT", f"/v1/items/of-{number}", item),
            )
        ),
        ("GET", "/readyz", None, None),
    ]


class Clients:
    """So many clients, each asking in turn until it is told to stop."""

    def __init__(self, port, png):
        self.port, self.png, self.statuses, self.failures, self.longest = port, png, Counter(), [], 0.0
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.ask, args=(number,)) for number in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def ask(self, number):
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        while not self.stop.is_set():
            for method, path, body, kind in requests_of(number, self.png):
                started = time.perf_counter()
                try:
                    connection.request(method, path, body, {} if kind is None else {"Content-Type": kind})
                    answer = connection.getresponse()
                    text = answer.read()
                except OSError as problem:
                    self.failures.append(repr(problem))
                    return
                self.longest = max(self.longest, time.perf_counter() - started)
                self.statuses[answer.status] += 1
                if answer.status not in (200, 201):
                    self.failures.append(text.decode()[:200])
        connection.close()

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def top_class(port, data):
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    method, path, body, kind = form(data)
    connection.request(method, path, body, {"Content-Type": kind})
    found = json.loads(connection.getresponse().read())["matches"]
    connection.close()
    return (found[0]["metadata"] or {}).get("class")


def main(updates):
    rng, names = np.random.default_rng(0), list(COLOURS)
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name).resolve()
        for each in names[:3]:
            write_images(folder / "photos", each, 40, rng)
        train = ("--bits", 24, "--network", "tiny", "--size", SIDE, "--outer", 20, "--no-report")
        adsh(folder, "train", "photos", *train, "--out", "m")
        for each in names[3 : 3 + updates]:
            write_images(folder / each, each, 40, rng)
        command = [sys.executable, "-m", "adsh", "serve", "m", "--port", "0", "--json"]
        with (folder / "log").open("wb") as log:
            service = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True)
        lines = ""
        while not lines.rstrip().endswith("}"):
            lines += service.stdout.readline()
        port = int(json.loads(lines)["url"].rpartition(":")[2])
        file = io.BytesIO()
        Image.open(folder / "photos" / "red" / "red0.png").save(file, "PNG")
        clients = Clients(port, file.getvalue())
        seconds, found = [], []
        try:
            time.sleep(3)
            for each in names[3 : 3 + updates]:
                started = time.perf_counter()
                adsh(folder, "update", "m", each, "--outer", 20)
                seconds.append(round(time.perf_counter() - started, 1))
                time.sleep(5)
                found.append(top_class(port, (folder / each / each / f"{each}0.png").read_bytes()) == each)
        finally:
            clients.end()
            service.terminate()
            service.wait(40)
        switched = (folder / "log").read_text().count("answers with the model")
    figures = {
        "clients": CLIENTS, "updates": updates, "models_switched": switched, "new_class_found_first": sum(found),
        "requests": sum(clients.statuses.values()), "statuses": dict(clients.statuses),
        "failed": len(clients.failures), "longest_answer_s": round(clients.longest, 2), "update_s": seconds,
    }  # fmt: skip
    print(json.dumps(figures), clients.failures[:3])
    print(record.write("reload", figures))
    assert not clients.failures


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 3)
