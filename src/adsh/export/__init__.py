"""Export models to ONNX."""
