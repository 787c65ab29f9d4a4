"""The search service: a model and an index behind HTTP. Holds no logic that the library lacks."""
