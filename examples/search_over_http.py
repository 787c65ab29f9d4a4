"""Search from Python over HTTP: start the service, and call it through `adsh.client`.

`adsh.client` is one file that needs only the standard library: copy it to where adsh is not installed. Everything that
it does is also a plain HTTP request (docs/howto/serve.md has each of them for curl).
"""

# %%
# A model and an index to serve: images of handwritten digits, 16 x 16 pixels.
import atexit
import io
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

import adsh
from adsh.client import Client, ServiceError

digits = load_digits()
small = (digits.images * 15).astype(np.uint8).repeat(2, axis=1).repeat(2, axis=2)  # (n, 16, 16)
images = np.stack([small] * 3, axis=-1)  # (n, 16, 16, 3)
folder = Path(tempfile.mkdtemp(prefix="adsh-http-"))
model = adsh.ADSH(bits=24, network="tiny", outer=5).fit(images[100:600], digits.target[100:600], save_to=folder / "m")
with adsh.open_index(folder / "m" / "index", bits=24, model=model) as index:
    classes = [{"class": str(label)} for label in digits.target[100:600]]
    index.add([f"digit {at}" for at in range(100, 600)], model.database_codes_, classes)

# %%
# Start the service, as on a command line. --port 0 selects any free port; the first line of output has the address.
command = [sys.executable, "-m", "adsh", "serve", str(folder / "m"), str(folder / "m/index"), "--token", "s3cret"]
server = subprocess.Popen([*command, "--port", "0", "--no-log"], stdout=subprocess.PIPE, text=True)
atexit.register(server.kill)  # also when something below fails
client = Client(server.stdout.readline().split()[-1], token="s3cret")
print(f"served: {client.info()['items']} items of {client.info()['bits']} bits")

# %%
# Search with an image: a path, or the bytes of a file.
png = io.BytesIO()
Image.fromarray(images[3]).save(png, "PNG")
for match in client.search(png.getvalue(), k=3)["matches"]:
    print(f"a {digits.target[3]} found {match['key']}, a {match['metadata']['class']}, {match['distance']} bits away")

# %%
# Store it, search by its key, and remove it again. An error has a message of one sentence.
client.add("new/3.png", png.getvalue(), metadata={"class": "3"})
print(f"like new/3.png: {[match['key'] for match in client.search(key='new/3.png', k=3)['matches']]}")
print(f"removed: {client.remove('new/3.png')}; and again: {client.remove('new/3.png')}")
try:
    client.search(code="12")
except ServiceError as problem:
    print(f"refused: {problem}")
client.close()
server.terminate()  # or Ctrl-C: accepted requests are finished first
server.communicate()
print(f"the service ended with status {server.returncode}")
