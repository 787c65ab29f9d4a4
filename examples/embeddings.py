"""Features from any embedding model: codes learned from vectors, whatever they are vectors of.

`embed` below stands for your model (CLIP, a sentence encoder, your own network): anything that turns items into
vectors. Here it is latent semantic analysis of short texts, which needs no download.
"""

# %%
# Some labelled synthetic texts, so that this runs anywhere.
import random
import tempfile
from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import adsh

words = {
    "kitchen": "bread oven flour salt pan soup knife onion butter recipe boil taste",
    "weather": "rain wind cloud storm snow sun cold degrees forecast sky ice warm",
    "music": "piano violin chord song choir rhythm tune drum concert melody sing band",
}
common = "today we had the and then some more with a little again before later"
random.seed(0)


def text(topic: str) -> str:
    """A few words of a topic among words of none."""
    return " ".join(random.sample(words[topic].split(), 3) + random.sample(common.split(), 6))


labels = [random.choice(list(words)) for _ in range(1200)]
texts = [text(topic) for topic in labels]

# %%
# The embedding: (n, d) floats, one row per item. Put your own model here.
lsa = make_pipeline(TfidfVectorizer(), TruncatedSVD(32, random_state=0)).fit(texts[200:])
embed = lsa.transform
vectors = embed(texts).astype(np.float32)  # (1200, 32)

# %%
# `mlp` learns codes from vectors in a second or two. The first 200 texts are the queries.
model = adsh.ADSH(bits=16, network="mlp", outer=10).fit(vectors[200:], labels[200:])
print(f"a text was {vectors[0].nbytes} bytes as a vector, and is {model.database_codes_.shape[1]} as a code")

# %%
# Search by the codes alone. `metrics` evaluates the ranking; with vectors, ties are re-ranked.
codes = model.encode(vectors[:200])
score = adsh.metrics.mean_average_precision(codes, model.database_codes_, labels[:200], labels[200:], bits=16)
print(f"MAP {score:.3f}, where chance is {1 / len(words):.3f}")

with adsh.open_index(Path(tempfile.mkdtemp(), "texts.index"), bits=16, create=True) as index:
    index.add([f"text {at}" for at in range(200, 1200)], model.database_codes_, vectors=vectors[200:])
    near = index.search(codes[:1], k=3, vectors=vectors[:1], rerank=True)[0]
print(f"query: {texts[0]}", *(f"found: {texts[int(key.split()[1])]}" for key in near.keys), sep="\n")
