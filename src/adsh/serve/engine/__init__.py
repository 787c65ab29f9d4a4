"""The service behind the routes: batches of images and searches, reads and writes, their limits and metrics."""
