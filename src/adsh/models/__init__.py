"""What a model is: the interface of all, ADSH itself, and how models are saved and loaded."""
