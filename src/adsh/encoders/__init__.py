"""From an image to its code, with torch or with onnxruntime alone."""
