"""The search service: a model and an index behind HTTP.

engine/      the service itself: requests in batches, and what they may take; knows nothing of HTTP
middleware/  what every request passes: authentication, limits, the log; knows nothing of routes
http/        routes, request bodies, schemas and answers
run          the process: opens the service, listens and stops
"""
