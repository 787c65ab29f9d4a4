"""What requests are answered by: the model, the index and the batching of both."""
