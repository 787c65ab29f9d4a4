"""Images: decoded from files, resized, cached and shown."""
