"""Train and evaluate the runs of the tasks, and collect what was measured of them."""
