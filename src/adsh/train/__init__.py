"""Algorithm 1 as a program: the loop, the optimisation step, checkpoints and several processes."""
