"""Routes, request bodies and answers."""
