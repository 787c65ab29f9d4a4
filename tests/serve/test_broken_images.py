"""Images with something wrong in them: coded as far as they can be, or refused in one sentence."""

from __future__ import annotations

import numpy as np

from .mutations import mutated, valid_images


def test_every_format_is_coded_whole(api):
    for name, data in valid_images().items():
        assert api.post("/v1/encode", files={"image": data}).status_code == 200, name


def test_two_hundred_broken_images_break_nothing(api):
    rng = np.random.default_rng(1)
    originals = list(valid_images().items())
    for at in range(200):
        name, data = originals[at % len(originals)]
        answer = api.post("/v1/encode", files={"image": mutated(data, rng)})
        assert answer.status_code in (200, 422), (at, name, answer.text)
        assert answer.status_code == 200 or "\n" not in answer.json()["detail"]
    assert api.get("/readyz").status_code == 200
